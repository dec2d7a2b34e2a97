import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from talkconv.training.average import average, last_checkpoints, mean_of
from tests.evaluation.cases import make_run, translator

STEPS = (5, 10, 20, 100)


def changed(by):
    """Return a network that differs from another of the same kind in all weights."""
    model = translator()
    generator = torch.Generator().manual_seed(by)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.fixture
def run(tmp_path):
    for step in STEPS:
        changed(step).save_pretrained(tmp_path / "checkpoints" / f"checkpoint-{step}")
    return make_run(tmp_path)


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_weights_are_means(run):
    out = average(run, last=3)
    several = [weights(run / "checkpoints" / f"checkpoint-{step}") for step in STEPS[1:]]
    found = weights(out)
    assert set(found) == set(several[0])
    for name, tensor in found.items():
        exact = sum(each[name].double() for each in several) / 3
        assert torch.equal(tensor, exact.float())
        assert not torch.equal(tensor, several[-1][name])


def test_the_mean_is_a_model_like_the_others(run):
    average(run, last=2)
    opened = open_run(run, "averaged")
    assert opened.model(
        torch.tensor([[5, 2]]), decoder_input_ids=torch.tensor([[2]])
    ).logits.shape == (
        1,
        1,
        29,
    )
    # tied weights are still tied
    assert opened.model.lm_head.weight is opened.model.decoder.embed_tokens.weight
    assert opened.tokenizer("w1")["input_ids"] == [5, 2]


def test_the_mean_of_one_is_that_one(run):
    out = average(run, last=1)
    newest = weights(run / "checkpoints" / "checkpoint-100")
    assert all(torch.equal(tensor, newest[name]) for name, tensor in weights(out).items())


def test_the_last_are_the_last_by_step(run):
    assert [path.name for path in last_checkpoints(run, 2)] == ["checkpoint-20", "checkpoint-100"]


def test_it_takes_the_place_of_an_older_one_and_leaves_nothing_else(run):
    average(run, last=1)
    before = weights(run / "averaged")
    average(run, last=4)
    after = weights(run / "averaged")
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert json.loads((run / "averaged" / "averaged.json").read_text()) == {
        "checkpoints": [f"checkpoint-{step}" for step in STEPS]
    }
    assert sorted(path.name for path in run.iterdir()) == [
        "averaged",
        "best",
        "checkpoints",
        "run.json",
    ]


def test_what_fails_leaves_the_older_one(run):
    average(run, last=1)
    before = weights(run / "averaged")
    broken = run / "checkpoints" / "checkpoint-100" / "model.safetensors"
    tensors = load_file(broken)
    name = next(iter(tensors))
    save_file({**tensors, name: tensors[name][:1].clone()}, broken, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=rf"{name} must have one shape in all checkpoints"):
        average(run, last=2)
    assert all(
        torch.equal(tensor, before[name]) for name, tensor in weights(run / "averaged").items()
    )
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


def one_tensor(folder, **tensors):
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_sums_are_float64(tmp_path):
    # in float32, 1 would vanish beside 2 ** 24 each time it is added
    values = [2.0**24, 1.0, 1.0, -(2.0**24)]
    folders = [
        one_tensor(tmp_path / str(at), w=torch.tensor([value])) for at, value in enumerate(values)
    ]
    assert mean_of(folders)["w"].item() == 0.5


def test_halves_stay_halves_and_counters_are_the_newest(tmp_path):
    first = one_tensor(tmp_path / "a", w=torch.ones(2).half(), n=torch.tensor([3]))
    second = one_tensor(tmp_path / "b", w=torch.zeros(2).half(), n=torch.tensor([8]))
    found = mean_of([first, second])
    assert found["w"].dtype == torch.float16
    assert found["w"].tolist() == [0.5, 0.5]
    assert found["n"].tolist() == [8]


def test_tensors_must_be_the_same(tmp_path):
    first = one_tensor(tmp_path / "a", w=torch.ones(2))
    second = one_tensor(tmp_path / "b", w=torch.ones(2), v=torch.ones(2))
    with pytest.raises(ValueError, match="only one of them has 'v'"):
        mean_of([first, second])


def test_shapes_must_be_the_same(tmp_path):
    folders = [one_tensor(tmp_path / str(n), w=torch.ones(n)) for n in (2, 3)]
    message = re.escape(f"got (2,) in {folders[0]} and (3,) in {folders[1]}")
    with pytest.raises(ValueError, match=f"w must have one shape in all checkpoints, {message}"):
        mean_of(folders)


def command(*arguments):
    return CliRunner().invoke(app, ["average", *map(str, arguments)])


def test_the_command(run):
    answer = command(run, "--last", 2)
    assert answer.exit_code == 0, answer.output
    assert "the mean of 2 checkpoints, checkpoint-20 to checkpoint-100" in answer.stdout
    # the mean is not used by default
    assert RunCard.read(run).model == "best"


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (10, "has 4 checkpoints (steps: 5, 10, 20, 100), so 10 cannot"),
        (0, "so 0 cannot be averaged"),
    ],
)
def test_mistakes_are_one_message(run, last, message):
    answer = command(run, "--last", last)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.output


def test_only_runs_have_checkpoints(tmp_path):
    answer = command(tmp_path)
    assert answer.exit_code == 1
    assert "has no run.json: give a folder that `talkconv train` wrote" in answer.stderr
