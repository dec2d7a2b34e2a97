"""A fresh environment with `talkconv[runtime]` alone reads an export; pip builds and fetches it."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import talkconv
from tests.serving.cases import LINES

ROOT = Path(__file__).parent.parent.parent
CODE = """
import importlib.util, json, sys
import talkconv

for name in ("torch", "transformers", "datasets", "onnx"):
    assert importlib.util.find_spec(name) is None, name
json.dump(talkconv.load(sys.argv[1]).generate(json.load(sys.stdin), beams=3), sys.stdout)
"""


@pytest.mark.slow
def test_the_runtime_needs_no_torch(translation, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    constraints = ["-c", str(ROOT / "constraints.txt")]
    install = [str(python), "-m", "pip", "install", "--quiet", *constraints]
    # the kernel is for torch; without it the package installs without a compiler
    no_kernel = ["-C", "cmake.define.TALKCONV_KERNEL=OFF", "-C", f"build-dir={tmp_path}/build"]
    subprocess.run([*install, *no_kernel, f"{ROOT}[runtime]"], check=True, timeout=900)
    command = [str(python), "-c", CODE, str(translation.folder)]
    given = json.dumps(LINES)
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout) == talkconv.load(translation.run).generate(LINES, beams=3)
    installed = subprocess.run(
        [str(python.with_name("talkconv")), "generate", str(translation.folder)],
        input="Der Hund läuft.\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert installed.stdout.count("\n") == 1
    assert sys.executable != str(python)
