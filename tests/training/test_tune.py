import pytest
import torch
from transformers import GenerationConfig
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data.prepared import open_prepared
from talkconv.evaluation.evaluate_run import evaluate_run
from talkconv.evaluation.perplexity import perplexity
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from talkconv.training import tune as tuning
from talkconv.training.average import average
from talkconv.training.tune import Trial, tune
from tests.evaluation.runs import (
    SETTINGS,
    language_modelling,
    network,
    run_on,
    summarization,
    translation,
)


def with_checkpoints(prepared, folder, steps=(1, 2, 3)):
    for step in steps:
        model = network(prepared)
        generator = torch.Generator().manual_seed(step)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        model.save_pretrained(folder / "checkpoints" / f"checkpoint-{step}")
    return run_on(prepared, folder)


@pytest.fixture
def run(tmp_path):
    return with_checkpoints(translation(tmp_path), tmp_path / "run")


@pytest.fixture
def chosen(monkeypatch):
    """Make one choice the best, whatever the untrained networks write."""

    def choose(checkpoints, penalty):
        counts = iter(range(100))

        def score(run, sources, references, settings):
            count = next(counts) // 2
            return 50.0 if (count, settings.length_penalty) == (checkpoints, penalty) else 10.0

        monkeypatch.setattr(tuning, "_score", score)

    return choose


def test_all_choices_are_tried(run):
    trials = tune(run, length_penalties=[0.5, 1.5], checkpoints=[1, 2])
    assert {(t.checkpoints, t.length_penalty) for t in trials} == {
        (count, penalty) for count in (0, 1, 2) for penalty in (0.5, 1.5)
    }
    assert [t.score for t in trials] == sorted((t.score for t in trials), reverse=True)


def test_the_best_choice_becomes_the_default(run, chosen):
    chosen(2, 1.5)
    trials = tune(run, length_penalties=[0.5, 1.5], checkpoints=[1, 2])
    assert trials[0] == Trial(2, 1.5, 50.0)
    card = RunCard.read(run)
    assert card.model == "averaged"
    assert card.generation.length_penalty == 1.5
    opened = open_run(run)
    assert opened.weights.name == "averaged"
    average(run, last=2)
    again = open_run(run, "averaged")
    for ours, theirs in zip(opened.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    for folder in ("best", "averaged"):
        config = GenerationConfig.from_pretrained(run / folder)
        assert (config.num_beams, config.length_penalty) == (SETTINGS.num_beams, 1.5)
    report = evaluate_run(run, "valid")
    assert report.about["model"] == "averaged"
    assert report.about["generation"]["length_penalty"] == 1.5


def test_no_average_may_be_the_best_choice(run, chosen):
    chosen(0, 0.5)
    tune(run, length_penalties=[0.5, 1.5], checkpoints=[1, 2])
    card = RunCard.read(run)
    assert (card.model, card.generation.length_penalty) == ("best", 0.5)
    assert not (run / "averaged").exists()


def test_nothing_else_of_the_card_changes_and_no_trial_remains(run):
    before = RunCard.read(run)
    tune(run, length_penalties=[1.0], checkpoints=[1])
    after = RunCard.read(run)
    assert after.generation.num_beams == SETTINGS.num_beams
    assert (after.task, after.data, after.fingerprint) == (
        before.task,
        before.data,
        before.fingerprint,
    )
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


def test_a_trials_score_is_what_evaluation_finds(run):
    trials = tune(run, length_penalties=[1.0], checkpoints=[])
    report = evaluate_run(run, "valid")
    assert trials[0].score == pytest.approx(report.scores[0].value)


def test_as_many_checkpoints_as_there_are(run):
    counts = {t.checkpoints for t in tune(run, length_penalties=[1.0])}
    assert counts == {0, 1, 3}


def test_summaries(tmp_path):
    run = with_checkpoints(summarization(tmp_path), tmp_path / "run")
    trials = tune(run, length_penalties=[0.5, 1.0], checkpoints=[1])
    assert len(trials) == 4
    assert all(0 <= t.score <= 100 for t in trials)


def test_a_language_model_has_the_least_perplexity(tmp_path):
    run = with_checkpoints(language_modelling(tmp_path), tmp_path / "run")
    trials = tune(run, checkpoints=[1, 3])
    assert {t.checkpoints for t in trials} == {0, 1, 3}
    assert all(t.length_penalty is None for t in trials)
    assert -trials[0].score == min(-t.score for t in trials)
    prepared = open_prepared(RunCard.read(run).data)
    tokens = [t for row in prepared.split("valid")["tokens"] for t in row]
    chosen = perplexity(open_run(run).model, tokens, block=8, context=4)
    assert -trials[0].score == pytest.approx(chosen.per_token)


def test_part_of_the_validation_set(run, monkeypatch):
    seen = []
    monkeypatch.setattr(tuning, "_score", lambda run, sources, *rest: seen.append(sources) or 1.0)
    tune(run, length_penalties=[1.0], checkpoints=[], lines=1)
    tune(run, length_penalties=[1.0], checkpoints=[])
    assert [len(sources) for sources in seen] == [1, 3]


def command(*arguments):
    return CliRunner().invoke(app, ["tune", *map(str, arguments)])


def test_the_command_prints_the_grid(run):
    answer = command(run, "--length-penalty", 0.5, "--length-penalty", 1.5, "--checkpoints", 2)
    assert answer.exit_code == 0, answer.output
    assert "penalty 0.5" in answer.stdout
    assert "mean of 2" in answer.stdout
    assert f"{run}/run.json now says model = " in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "--checkpoints", "9"], "has 3 checkpoints (steps: 1, 2, 3), so 9"),
        (["nowhere"], "nowhere has no run.json"),
    ],
)
def test_mistakes_are_one_message(run, arguments, message):
    answer = command(*({"RUN": run}.get(each, each) for each in arguments))
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.output
