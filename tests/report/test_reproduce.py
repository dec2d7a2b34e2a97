import os
import shutil
import signal
import threading
import time

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.report import reproduce as module
from talkconv.report.children import Children, Stopped
from talkconv.report.kept_run import read_evaluations, read_kept
from talkconv.report.locks import locked
from talkconv.report.outcome import Outcome, read_outcome, write_outcome
from talkconv.report.reproduce import Workshop, reproduce
from tests.report.cases import SCORE, prepare, read_plan, write_plan


class Here(Children):
    """Runs commands in this process, so that torch need not be imported again."""

    def __init__(self, codes=None):
        super().__init__()
        self.words = []
        self.codes = codes or {}

    def call(self, words, *, cwd, log, inherit=None):
        self.words.append(words[1:])
        for name, code in self.codes.items():
            if words[1] == "train" and f"runs/{name}" in words:
                return code
        os.chdir(cwd)
        answer = CliRunner().invoke(app, words[1:])
        assert answer.exit_code == 0, answer.output
        return 0

    def commands(self):
        return [(words[0], words[1] if words[0] != "train" else words[-1]) for words in self.words]


@pytest.fixture
def root(tmp_path, monkeypatch, no_pictures):
    monkeypatch.chdir(tmp_path)
    write_plan(tmp_path)
    prepare(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def same_signals():
    """Undo what the command does to a signal of this process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def shop_in(root, children):
    return Workshop(root, root / "raw", root / "plan.toml", root / "results", children)


def go(root, children, names=None, jobs=1):
    plan = read_plan(root / "plan.toml")
    return reproduce(shop_in(root, children), plan, names or [r.name for r in plan.runs()], jobs)


def test_a_plan_is_carried_out_once(root):
    children = Here()
    assert go(root, children) == []
    runs = ["tiny-talk", "tiny-talk-seed2", "tiny-attention"]
    for name in runs:
        assert read_outcome(root / "runs" / name).chosen in ("best", "averaged")
        assert read_kept(root / "results" / "runs" / name).score("test", SCORE) is not None
    compared = read_evaluations(root / "runs" / "tiny-attention")["test"]["comparisons"]
    assert compared[0]["name"] == SCORE
    assert not read_evaluations(root / "runs" / "tiny-talk-seed2")["test"]["comparisons"]
    assert "TaLK" in (root / "results" / "README.md").read_text()
    # the page once for each run
    assert [words[0] for words in children.words].count("report") == 3
    again = Here()
    assert go(root, again) == []
    assert again.words == []


def test_a_run_that_was_scored_before_its_baseline_is_compared_later(root):
    assert go(root, Here(), ["tiny-attention"]) == []
    assert not read_evaluations(root / "runs" / "tiny-attention")["test"]["comparisons"]
    children = Here()
    assert go(root, children) == []
    assert read_evaluations(root / "runs" / "tiny-attention")["test"]["comparisons"]
    assert ("tune", "runs/tiny-attention") not in children.commands()


def test_a_run_is_compared_with_a_baseline_of_another_machine(root):
    assert go(root, Here(), ["tiny-talk"]) == []
    shutil.rmtree(root / "runs" / "tiny-talk")
    assert go(root, Here(), ["tiny-attention"]) == []
    assert read_evaluations(root / "runs" / "tiny-attention")["test"]["comparisons"]


def test_a_run_that_diverges_is_said_so_and_not_tried_again(root):
    children = Here({"tiny-attention": 3})
    assert go(root, children, ["tiny-attention"]) == []
    assert read_outcome(root / "runs" / "tiny-attention").failure == "diverges"
    again = Here()
    assert go(root, again, ["tiny-attention"]) == []
    assert again.words == []


def test_a_command_that_fails_is_named_with_its_log(root):
    (error,) = go(root, Here({"tiny-attention": 1}), ["tiny-attention"])
    assert "--out runs/tiny-attention ended with exit code 1" in error
    assert error.endswith(f"see {root / 'runs' / 'tiny-attention.log'}")


def test_a_run_that_others_work_on_is_left_alone(root):
    children = Here()
    with locked(root / "runs" / ".tiny-attention.lock"):
        assert go(root, children, ["tiny-attention"]) == []
    assert children.words == []


def test_data_that_others_prepare_is_left_alone(root):
    """Two preparations in one folder would delete each other's files."""
    (root / "data" / "tiny" / "data.json").unlink()
    children = Here()
    with locked(root / "runs" / ".prepare-tiny.lock"):
        (error,) = go(root, children, ["tiny-attention"])
    assert error.startswith(f"another process prepares {root / 'data' / 'tiny'}: call this again")
    assert children.words == []


def test_a_begun_run_goes_on(root):
    (root / "runs" / "tiny-attention").mkdir(parents=True)
    children = Here({"tiny-attention": 1})
    go(root, children, ["tiny-attention"])
    assert children.words[0][-1] != "--resume"
    for name in ("run.json", "recipe.toml"):
        (root / "runs" / "tiny-attention" / name).write_text("")
    module_summary = {"finished": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "summary_of", lambda run: module_summary)
        go(root, children, ["tiny-attention"])
    assert children.words[-1][-1] == "--resume"


def test_ctrl_c_stops_the_children_and_is_said(root, monkeypatch):
    stopped = []

    class Waiting(Children):
        def call(self, words, **_):
            while not stopped:
                time.sleep(0.01)
            raise Stopped(words)

        def stop(self):
            stopped.append(True)

    monkeypatch.setattr(module, "Children", Waiting)
    monkeypatch.setattr(module, "Workshop", lambda *places: shop_in(root, Waiting()), raising=True)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM))
    timer.start()
    answer = CliRunner().invoke(app, ["reproduce", "raw", "--plan", "plan.toml", "--jobs", "2"])
    assert answer.exit_code == 130
    assert "the same command goes on from here" in answer.stderr
    assert stopped


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plan", "gone.toml"], "gone.toml"),
        (["--plan", "plan.toml", "--only", "tiny-tolk"], "did you mean 'tiny-talk'"),
    ],
)
def test_mistakes_are_one_message(root, words, message):
    answer = CliRunner().invoke(app, ["reproduce", "raw", *words])
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.output


def test_a_table_that_averages_more_checkpoints_than_there_are_is_refused(root):
    # the tiny recipe saves four checkpoints and keeps three
    write_plan(root, average=4)
    answer = CliRunner().invoke(app, ["reproduce", "raw", "--plan", "plan.toml"])
    assert answer.exit_code == 1
    assert "average = 4 of table 'tiny' must be at most" in answer.stderr.replace("\n", " ")
    assert "tiny-talk keeps, 3: it saves one every 3 of 12 steps" in answer.stderr.replace(
        "\n", " "
    )


def test_outcomes_read_back(tmp_path):
    assert read_outcome(tmp_path) == Outcome()
    outcome = Outcome({"date": "2026-01-02"}, None, "averaged")
    write_outcome(tmp_path, outcome)
    assert read_outcome(tmp_path) == outcome
