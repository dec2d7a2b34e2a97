import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from talkconv.bench import check
from talkconv.bench.check import losses
from talkconv.bench.compare import FOREIGN, changes, memory_changes
from talkconv.bench.methods import METHODS
from talkconv.bench.part import Part, Row
from talkconv.cli import app

KEY = "forward, float32, n = 10"
MACHINE = dict(processor="one", threads=2, kernel="avx2", torch="2")


def timing(median, spread=0.02):
    return dict(median=median, low=median * (1 - spread), high=median * (1 + spread), runs=9)


def parts(spread=0.02, size=100 << 20, **medians):
    """Return a folder's parts with one row of throughput: ours, fused and lstm."""
    names = dict(ours="TaLK", fused="self-attention, fused", lstm="LSTM")
    timings = {names[name]: timing(median, spread) for name, median in medians.items()}
    row = {"timings": timings, "bytes": {"TaLK": size}, "absent": {}}
    return {"throughput": {"machine": MACHINE, "quick": True, "rows": {KEY: row}}}


def lost(before, after, most=0.2):
    return [each.name for each in losses(list(changes(before, after)), most)]


BEFORE = parts(ours=1.0, fused=5.0, lstm=50.0)


def test_slower_timings_are_losses_and_faster_ones_are_not():
    assert lost(BEFORE, parts(ours=1.3, fused=5.0, lstm=50.0)) == ["TaLK"]
    assert lost(BEFORE, parts(ours=0.7, fused=5.0, lstm=50.0)) == []
    assert lost(BEFORE, parts(ours=1.15, fused=5.0, lstm=50.0)) == []


def test_a_slower_machine_is_no_loss():
    assert lost(BEFORE, parts(ours=2.0, fused=10.0, lstm=100.0)) == []
    # a faster machine does not hide a loss
    assert lost(BEFORE, parts(ours=1.0, fused=2.5, lstm=25.0)) == ["TaLK"]


def test_noise_is_no_loss():
    assert lost(parts(ours=1.0, spread=0.5), parts(ours=1.3, spread=0.5)) == []


def test_others_may_become_slower():
    assert lost(BEFORE, parts(ours=1.0, fused=5.0, lstm=90.0)) == []


def test_only_the_code_of_this_package_is_judged():
    ours = {"TaLK", "LightConv k=31, blocks", "DynamicConv k=3, blocks", "DynamicConv k=31, blocks"}
    assert METHODS.keys() - FOREIGN == ours


def with_networks(found, **medians):
    """Add a row of networks, which has no foreign contestant."""
    rows = {
        "training, n = 512": {"timings": {name: timing(each) for name, each in medians.items()}}
    }
    found["networks"] = {"machine": MACHINE, "quick": True, "rows": rows}
    return found


def test_rows_without_foreign_contestants_take_the_speed_of_all_rows():
    before = with_networks(parts(ours=1.0, fused=5.0), talk=3.0)
    assert lost(before, with_networks(parts(ours=2.0, fused=10.0), talk=6.1)) == []
    assert lost(before, with_networks(parts(ours=2.0, fused=10.0), talk=7.5)) == ["talk"]


def test_a_minute_in_which_a_row_of_our_networks_was_slow_is_no_loss():
    before = with_networks(parts(ours=1.0, fused=5.0), talk=3.0, attention=3.0)
    slow_minute = with_networks(parts(ours=1.0, fused=5.0), talk=4.1, attention=3.7)
    assert lost(before, slow_minute) == []
    slower = with_networks(parts(ours=1.0, fused=5.0), talk=4.1, attention=3.0)
    assert lost(before, slower) == ["talk"]


def test_a_faster_network_does_not_make_the_others_of_its_row_slow():
    before = with_networks(parts(ours=1.0, fused=5.0), talk=3.0, attention=3.0)
    assert lost(before, with_networks(parts(ours=1.0, fused=5.0), talk=2.0, attention=3.0)) == []


def test_only_large_changes_of_memory_are_told():
    assert list(memory_changes(BEFORE, parts(ours=1.0, size=105 << 20))) == []
    (told,) = memory_changes(BEFORE, parts(ours=1.0, size=150 << 20))
    assert told == (KEY, "TaLK", 100 << 20, 150 << 20)


def written(folder, found):
    folder.mkdir()
    for name, each in found.items():
        (folder / f"{name}.json").write_text(json.dumps(each))
    return str(folder)


def test_compare_says_what_changed_beyond_the_noise(tmp_path):
    before = written(tmp_path / "a", BEFORE)
    after = written(tmp_path / "b", parts(ours=1.5, fused=5.01, lstm=50.0))
    result = CliRunner().invoke(app, ["bench", "compare", before, after], env={"COLUMNS": "150"})
    assert result.exit_code == 0, result.output
    assert "1 of 3 timings" in result.output
    assert "1.50" in result.output
    assert "LSTM" not in result.output


def test_compare_refuses_what_is_no_result(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    result = CliRunner().invoke(app, ["bench", "compare", str(empty), str(empty)])
    assert result.exit_code == 1
    assert "must be a folder that `talkconv bench all` wrote" in result.output
    (empty / "throughput.json").write_text('{"results": []}')
    result = CliRunner().invoke(app, ["bench", "compare", str(empty), str(empty)])
    assert "must be a file that `talkconv bench all` wrote" in result.output


@pytest.fixture
def measured(monkeypatch):
    """Let bench check measure these rows, one after the other, instead of the real ones."""
    rows = []

    def chosen(names, quick):
        return [Part("throughput", [Row(KEY, lambda before: rows.pop(0), 1.0)], list)]

    monkeypatch.setattr(check, "chosen_parts", chosen)
    return rows


def row_of(**medians):
    return parts(**medians)["throughput"]["rows"][KEY]


def test_check_fails_on_a_loss_that_repeats(tmp_path, measured):
    folder = tmp_path / "committed"
    written(folder, BEFORE)
    slower = row_of(ours=1.4, fused=5.0, lstm=50.0)
    measured[:] = [slower, slower]
    assert not check.check(folder, 0.2, Console(quiet=True))
    assert measured == []


def test_check_ignores_a_loss_that_does_not_repeat(tmp_path, measured):
    folder = tmp_path / "committed"
    written(folder, BEFORE)
    measured[:] = [row_of(ours=1.4, fused=5.0, lstm=50.0), row_of(ours=1.0, fused=5.0, lstm=50.0)]
    assert check.check(folder, 0.2, Console(quiet=True))


def test_check_needs_a_committed_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bench", "check"])
    assert result.exit_code == 1
    assert "`talkconv bench all` writes them" in result.output
