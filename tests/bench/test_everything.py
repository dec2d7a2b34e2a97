import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from talkconv.bench import everything, throughput
from talkconv.bench.accuracy import SCHEMES
from talkconv.bench.correctness import Finding
from talkconv.bench.everything import chosen_parts, measure_parts
from talkconv.bench.part import PART_NAMES, Part, Row
from talkconv.cli import app

CONSOLE = Console(quiet=True)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Draw no pictures, which would take seconds. test_pictures tests them."""
    monkeypatch.setattr("talkconv.bench.page.write.save", lambda picture, folder: None)


def part(measured, check=list, stop_at=None):
    """Return a part of accuracy with three rows, which notes what it measures."""

    def measure(n):
        def run(rows):
            if n == stop_at:
                raise KeyboardInterrupt
            measured.append(n)
            return {"errors": dict.fromkeys(SCHEMES, 1 / n)}

        return run

    rows = [Row(f"n = {n}", measure(n), 1.0) for n in (64, 256, 1024)]
    return Part("accuracy", rows, check)


def run(folder, made, **options):
    measure_parts(folder, [made], CONSOLE, **{"quick": True, "fresh": False, **options})


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    measured = []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, part(measured, stop_at=1024))
    found = json.loads((tmp_path / "accuracy.json").read_text())
    assert not found["complete"]
    assert list(found["rows"]) == ["n = 64", "n = 256"]
    run(tmp_path, part(measured))
    assert measured == [64, 256, 1024]
    assert json.loads((tmp_path / "accuracy.json").read_text())["complete"]
    page = (tmp_path / "README.md").read_text()
    assert "n = 1 024" in page
    assert "interrupted" not in page


def test_a_complete_run_is_not_measured_again_unless_fresh(tmp_path):
    measured = []
    run(tmp_path, part(measured))
    run(tmp_path, part(measured))
    assert measured == [64, 256, 1024]
    run(tmp_path, part(measured), fresh=True)
    assert measured == 2 * [64, 256, 1024]


@pytest.mark.parametrize("change", ["quick", "commit"])
def test_rows_that_were_measured_otherwise_are_measured_again(tmp_path, change):
    measured = []
    run(tmp_path, part(measured))
    path = tmp_path / "accuracy.json"
    found = json.loads(path.read_text())
    if change == "commit":
        found["machine"]["commit"] = "another"
        path.write_text(json.dumps(found))
    run(tmp_path, part(measured), quick=change != "quick")
    assert measured == 2 * [64, 256, 1024]


def test_nothing_is_measured_on_red(tmp_path):
    measured = []
    wrong = part(measured, check=lambda: [Finding("TaLK", is_right=False, why="it is off")])
    with pytest.raises(ValueError, match="TaLK: it is off"):
        run(tmp_path, wrong)
    assert measured == []
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_on_red_with_one_message(tmp_path, monkeypatch):
    wrong = part([], check=lambda: [Finding("TaLK", is_right=False, why="it is off")])
    monkeypatch.setattr(everything, "chosen_parts", lambda names, quick: [wrong])
    result = CliRunner().invoke(app, ["bench", "all", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "not measured: contestants must compute" in result.output


def test_the_command_says_how_to_go_on_after_ctrl_c(tmp_path, monkeypatch):
    stopped = part([], stop_at=256)
    monkeypatch.setattr(everything, "chosen_parts", lambda names, quick: [stopped])
    result = CliRunner().invoke(app, ["bench", "all", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command goes on where it was" in result.output


def test_parts_are_chosen_by_name():
    assert [each.name for each in chosen_parts([], quick=True)] == list(PART_NAMES)
    assert [each.name for each in chosen_parts(["accuracy"], quick=False)] == ["accuracy"]
    with pytest.raises(ValueError, match="did you mean 'networks'"):
        chosen_parts(["network"], quick=True)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("bfloat16", [True, False])
def test_keys_are_unique_and_the_time_is_bounded(quick, bfloat16, monkeypatch):
    monkeypatch.setattr(throughput, "has_bfloat16", lambda: bfloat16)
    parts = chosen_parts([], quick=quick)
    for each in parts:
        keys = [row.key for row in each.rows]
        assert len(keys) == len(set(keys))
    seconds = sum(row.seconds for each in parts for row in each.rows)
    assert seconds < (110 if quick else 3300)


def test_quick_rows_can_be_compared_with_full_ones():
    for quick, full in zip(
        chosen_parts([], quick=True), chosen_parts([], quick=False), strict=True
    ):
        assert {row.key for row in quick.rows} <= {row.key for row in full.rows}
