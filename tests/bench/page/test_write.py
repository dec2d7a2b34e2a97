import json

import torch
from typer.testing import CliRunner

from talkconv.bench import accuracy, complexity, engines, generation_part, network_part, throughput
from talkconv.bench.inputs import DIRECTIONS
from talkconv.bench.methods import FUSED, METHODS, OURS, PLAIN
from talkconv.bench.page import throughput as throughput_section
from talkconv.bench.page.markdown import absences, overlaps, said_overlaps, timings_of
from talkconv.bench.page.write import write_page
from talkconv.bench.part import PART_NAMES
from talkconv.cli import app
from talkconv.machine import describe_machine
from talkconv.network_settings import MIXERS


def timing(seconds, spread=0.01):
    return dict(median=seconds, low=seconds * (1 - spread), high=seconds * (1 + spread), runs=9)


def row(names, seconds, **more):
    return {
        "timings": {name: timing(seconds * (k + 1)) for k, name in enumerate(names)},
        "bytes": {name: (k + 1) << 20 for k, name in enumerate(names)},
        "absent": {},
        **more,
    }


def all_rows():
    """Return rows of every part of a full run; the n-th contestant takes n times as long."""
    mixers = MIXERS
    methods = {
        throughput.row_key(direction, torch.float32, n): row(METHODS, n * 1e-5)
        for direction in DIRECTIONS
        for n in throughput.LENGTHS
    }
    exponents = {
        complexity.row_key(layer.name, axis): {
            "timings": {str(value): timing(value * 1e-3) for value in points},
            "exponent": 1.0,
            "error": 0.01,
        }
        for layer in complexity.LAYERS
        for axis, points in layer.points.items()
    }
    networks = {
        **{network_part.training_key(n): row(mixers, 3.0) for n in network_part.TRAINING_LENGTHS},
        **{
            network_part.document_key(n): row(mixers, n * 1e-3)
            for n in network_part.DOCUMENT_LENGTHS
        },
        **{
            network_part.reach_key(mixer): dict(tokens=40_000, tried=mixer != "attention", peaks={})
            for mixer in mixers
        },
        network_part.CHANGING_SHAPES: {"bytes": dict.fromkeys(mixers, 1 << 30)},
    }
    names = (engines.OURS, generation_part.ATTENTION, engines.MARIAN)
    generation = {
        **{generation_part.search_key(*each): row(names, 1.0) for each in generation_part.SEARCHES},
        **{
            generation_part.steps_key(n): row(("talk", "attention"), 1e-3)
            for n in generation_part.AFTER
        },
    }
    errors = {
        accuracy.row_key(n): {
            "errors": dict.fromkeys(accuracy.SCHEMES, 1e-6),
            "absolute": dict.fromkeys(("output", "grad_x", "grad_left", "grad_right"), 1e-7),
        }
        for n in accuracy.LENGTHS
    }
    return dict(zip(PART_NAMES, (methods, exponents, networks, generation, errors), strict=True))


def write(folder, rows, complete=True):
    for name, each in rows.items():
        part = dict(machine=describe_machine(), quick=False, complete=complete, rows=each)
        (folder / f"{name}.json").write_text(json.dumps(part))


def test_the_page_has_all_tables_pictures_and_bars(tmp_path, monkeypatch):
    def touch(picture, folder):
        # drawing all of them would take ten seconds
        assert picture.ours in picture.lines
        for kind in ("svg", "png"):
            (folder / f"{picture.name}.{kind}").touch()

    monkeypatch.setattr("talkconv.bench.page.write.save", touch)
    write(tmp_path, all_rows())
    result = CliRunner().invoke(app, ["bench", "page", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "README.md").read_text()
    machine = describe_machine()
    for told in ("processor", "torch", "commit", "date", "kernel"):
        assert str(machine[told]) in page
    pictures = sorted(path.stem for path in tmp_path.glob("*.svg"))
    assert pictures == sorted(path.stem for path in tmp_path.glob("*.png"))
    assert {"throughput", "memory", "training", "documents", "steps-memory", "accuracy"} < set(
        pictures
    )
    assert all(f"({name}.svg)" in page for name in pictures)
    # bars: n = 10 with a ratio of 3 to fused attention, whatever the length
    assert (
        "| forward, n = 10: times faster than fused attention | at least 5 | 3 | not met |" in page
    )
    assert (
        "| forward + backward, n = 10: times faster than fused attention | at least 3 | 3 | met |"
        in page
    )
    assert "extrapolated from shorter ones" in page


def test_the_page_can_be_written_from_some_parts_and_says_what_is_missing(tmp_path):
    rows = all_rows()["accuracy"]
    write(tmp_path, {"accuracy": dict(list(rows.items())[:2])}, complete=False)
    write_page(tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "It was interrupted, and some rows are missing." in page
    assert "Throughput" not in page


def test_the_papers_ratios_stand_beside_ours():
    rows = all_rows()["throughput"]
    text = throughput_section.section(rows)
    order = list(METHODS)
    band = order.index("DynamicConv k=3, band") + 1
    unfold = order.index("DynamicConv k=3, unfold") + 1
    plain = order.index(PLAIN) + 1
    # 9686 / 4576, 9686 / 3739 and 1.1 times less memory in the paper
    assert f"| 10 | 2.12 | {plain} | 2.59 | {band} |" in text
    # 898 / 102 and 898 / 443; the paper unfolds from 500 tokens on
    assert f"| 1 000 | 8.8 | {plain} | 2.03 | {unfold} |" in text
    assert "| 10 000 | – |" in text
    assert order.index(FUSED) == 2


def test_overlapping_quartiles_are_said():
    wide = {"a": timing(1.0, 0.1), "b": timing(1.1, 0.1), "c": timing(9.0)}
    found = {"timings": wide, "absent": {"d": "would take about 99 s"}}
    assert overlaps(timings_of(found)) == [("a", "b")]
    assert said_overlaps({"n = 10": found}) == (
        "- n = 10: the quartiles of these overlap: a and b."
    )
    assert absences({"n = 10": found}) == "- n = 10: not measured: d (would take about 99 s)."
    assert OURS in METHODS
