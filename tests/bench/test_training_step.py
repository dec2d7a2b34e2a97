import json
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).parents[2] / "benchmarks" / "steps_of_one_version.py"


def test_the_worker_counts_the_steps_that_each_line_asks_for():
    done = subprocess.run(
        [sys.executable, WORKER, "toy", "light"],
        input="1\n2\n",
        capture_output=True,
        text=True,
        check=True,
    )
    one, two = map(json.loads, done.stdout.splitlines())
    assert 0 < one["tokens"] < two["tokens"]
    assert min(one["seconds"], two["seconds"]) > 0
    assert two["peak"] >= one["peak"] > 100 * 2**20
