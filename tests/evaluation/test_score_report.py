import io
import json

from rich.console import Console

from talkconv.evaluation.metric import Score
from talkconv.evaluation.score_report import ScoreReport, paper_scores
from talkconv.evaluation.significance import Comparison

SCORES = [
    Score("ROUGE-1 F1", 40.1234, "ROUGE-1 F1 = 40.123", "by hand", (39.5, 40.75)),
    Score("other", 1.0, "other = 1", "by guess"),
]


def printed(table):
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_a_row_has_value_interval_paper_and_signature():
    text = printed(ScoreReport("title", SCORES, {"ROUGE-1 F1": 40.59}).table())
    row = next(line for line in text.splitlines() if "ROUGE-1" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "ROUGE-1 F1",
        "40.12",
        "39.50 – 40.75",
        "40.59",
        "by hand",
    ]
    assert "95% interval" in text


def test_columns_that_would_be_empty_are_left_out():
    text = printed(ScoreReport("title", SCORES[1:]).table())
    assert "paper" not in text
    assert "interval" not in text


def test_comparisons_have_a_table():
    compared = Comparison("BLEU", 30.0, 29.5, p_value=0.0123, wins=0.98)
    text = printed(ScoreReport("t", SCORES, comparisons=[compared]).comparison_table())
    assert all(cell in text for cell in ("30.00", "29.50", "+0.50", "98%", "0.012"))


def test_json_holds_all(tmp_path):
    compared = Comparison("BLEU", 30.0, 29.5, p_value=0.01, wins=0.98)
    report = ScoreReport("t", SCORES, {"other": 2.0}, [compared], {"run": "r"})
    report.write(tmp_path / "folder" / "r.json")
    content = json.loads((tmp_path / "folder" / "r.json").read_text())
    assert content["scores"][0]["interval"] == [39.5, 40.75]
    assert content["comparisons"][0]["difference"] == 0.5
    assert content["paper"] == {"other": 2.0}
    assert content["about"] == {"run": "r"}


def test_the_papers_scores_get_our_names():
    paper = dict(table=4, metric="rouge1", score=40.59, also={"rouge2": 18.97, "rougeL": 36.81})
    assert paper_scores(paper) == {
        "ROUGE-1 F1": 40.59,
        "ROUGE-2 F1": 18.97,
        "ROUGE-L, sentences F1": 36.81,
    }
    assert paper_scores(None) == {}
