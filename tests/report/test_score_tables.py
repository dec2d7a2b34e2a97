from dataclasses import replace

import pytest

from talkconv.report.kept_run import KeptRun
from talkconv.report.plan import Published, Row, Table
from talkconv.report.score_tables import score_table
from tests.report.cases import SCORE, kept

TABLE = Table(
    "t",
    "T",
    "toy",
    SCORE,
    [Row("talk", "TaLK", seeds=[1, 2]), Row("light", "LightConv")],
    baseline="talk",
    published=[Published("Others", 41.02, 2_600_000)],
)


def cells(table, runs):
    lines = score_table(table, runs).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def compared(value, difference, p_value):
    run = kept("toy-light", value)
    comparison = {"name": SCORE, "difference": difference, "p_value": p_value}
    run.evaluations["test"]["comparisons"].append(comparison)
    return run


def test_a_row_has_mean_seeds_interval_and_comparison():
    runs = {
        "toy-talk": kept("toy-talk", 41.5),
        "toy-talk-seed2": kept("toy-talk-seed2", 41.0),
        "toy-light": compared(40.0, -1.5, 0.012),
    }
    others, talk, light = cells(TABLE, runs)
    assert others[f"{SCORE}, test"] == "41.02"
    assert others["parameters"] == "2.60M"
    assert talk[f"{SCORE}, test"] == "41.25 (41.50, 41.00)"
    assert talk["95 % interval"] == "40.50 – 42.50"
    assert talk["against TaLK, test"] == "–"
    assert light["against TaLK, test"] == "-1.50 (p = 0.012)"
    assert light["trained on tokens"] == "2.5M"
    assert light["training tokens/s"] == "1,600"
    assert light["sentences/s written"] == "21.2"


def test_the_baseline_is_named_in_full_if_another_row_begins_like_it():
    rows = [Row("talk", "TaLK, 2 heads"), Row("light", "LightConv, 2 heads")]
    runs = {name: kept(name) for name in ("toy-talk", "toy-four")}
    runs["toy-light"] = compared(40.0, -1.5, 0.012)
    assert "against TaLK, test" in cells(replace(TABLE, rows=rows), runs)[-1]
    more = [*rows, Row("four", "TaLK, 4 heads")]
    light = cells(replace(TABLE, rows=more), runs)[-2]
    assert light["against TaLK, 2 heads, test"] == "-1.50 (p = 0.012)"


def test_every_split_has_its_own_comparison():
    table = replace(TABLE, splits=["test", "valid"])
    light = compared(40.0, -1.5, 0.012)
    ahead = {"name": SCORE, "difference": 0.75, "p_value": 0.3}
    light.evaluations["valid"] = light.evaluations["test"] | {"comparisons": [ahead]}
    runs = {name: kept(name) for name in ("toy-talk", "toy-talk-seed2")}
    row = cells(table, runs | {"toy-light": light})[-1]
    assert row["against TaLK, test"] == "-1.50 (p = 0.012)"
    assert row["against TaLK, valid"] == "+0.75 (p = 0.300)"


def test_rows_that_are_missing_or_unfinished_say_so():
    runs = {
        "toy-talk": kept("toy-talk"),
        "toy-talk-seed2": KeptRun("toy-talk-seed2"),
        "toy-light": kept("toy-light", summary={"step": 5, "max_steps": 9}, speed={}),
    }
    _, talk, light = cells(TABLE, runs)
    assert talk["network"] == "TaLK (*toy-talk-seed2: not trained yet*)"
    assert talk[f"{SCORE}, test"] == "40.00"
    assert light["network"] == "LightConv (*at step 5 of 9*)"
    assert light[f"{SCORE}, test"] == "–"


@pytest.mark.parametrize(
    "column", ["training tokens/s", "sentences/s written", "against TaLK, test"]
)
def test_a_column_without_a_number_is_left_out(column):
    names = ("toy-talk", "toy-talk-seed2", "toy-light")
    assert column not in cells(TABLE, {name: kept(name, speed={}) for name in names})[0]


def test_the_papers_rows_stand_beside_ours():
    table = Table("t", "T", "toy", SCORE, [Row("talk", "TaLK", paper="36.65 ± 0.05")])
    (row,) = cells(table, {"toy-talk": kept("toy-talk")})
    assert row["paper, IWSLT"] == "36.65 ± 0.05"
