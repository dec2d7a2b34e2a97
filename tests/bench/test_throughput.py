import sys

import pytest
import torch

from talkconv.bench.inputs import FORWARD, TRAINING, Inputs, Setting
from talkconv.bench.measure import QUICK, Pace
from talkconv.bench.methods import FLEX, FUSED, METHODS, OURS, PLAIN
from talkconv.bench.throughput import QUICK_METHODS, measure_methods, row_key, throughput_part

SMALL = Setting(n=50, batch=2, dim=64, heads=4, reach=5)


def test_methods_are_measured_in_both_directions():
    pace = Pace(seconds=0, least_rounds=1, enough=0.01)
    row = measure_methods(SMALL, TRAINING, [OURS, FUSED, FLEX], pace)
    assert set(row["timings"]) == set(row["bytes"]) == {OURS, FUSED}
    assert row["absent"] == {FLEX: "has no backward on a CPU"}
    assert all(timing["median"] > 0 for timing in row["timings"].values())


def test_a_table_that_no_machine_holds_is_not_tried():
    if sys.platform != "linux":
        pytest.skip("only Linux tells how much memory is free")
    row = measure_methods(Setting(n=10_000_000), FORWARD, [PLAIN], QUICK)
    assert row["timings"] == {}
    assert row["absent"][PLAIN].startswith("needs a tensor of")


def test_long_inputs_repeat_their_tokens():
    x = Inputs(Setting(n=20_005, batch=1, dim=4, heads=1)).x
    assert x.shape == (1, 20_005, 4)
    assert torch.equal(x[:, :5], x[:, 20_000:])
    assert not torch.equal(x[:, :5], x[:, 5:10])


def test_the_part_has_a_row_for_each_length_and_direction():
    quick, full = throughput_part(quick=True), throughput_part(quick=False)
    keys = [row.key for row in quick.rows]
    assert keys[0] == row_key(FORWARD, torch.float32, 10)
    assert len(keys) == 6
    # a quick result can be compared with a full one
    assert set(keys) < {row.key for row in full.rows}
    assert row_key(TRAINING, torch.float32, 100_000) in {row.key for row in full.rows}


def test_what_cannot_run_here_is_absent_with_its_reason(monkeypatch):
    from talkconv.bench import throughput
    from talkconv.bench.correctness import Finding

    part = throughput_part(quick=True)
    finding = Finding("LSTM", is_right=False, runs=False, why="no kernel")
    monkeypatch.setattr(throughput, "check_methods", lambda *args: [finding])
    asked = {}

    def measure(setting, direction, names, *args):
        asked["names"] = names
        return {"timings": {}, "bytes": {}, "absent": {}}

    monkeypatch.setattr(throughput, "measure_methods", measure)
    part.check()
    row = part.rows[0].measure({})
    assert row["absent"] == {"LSTM": "does not run here: no kernel"}
    assert asked["names"] == [name for name in QUICK_METHODS if name != "LSTM"]
    assert set(QUICK_METHODS) < set(METHODS)
