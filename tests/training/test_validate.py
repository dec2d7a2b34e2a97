import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from talkconv.data.batching import Batches, examples_of
from talkconv.data.prepared import open_prepared
from talkconv.models import TaLKConvForCausalLM
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.training.fit import build_model
from talkconv.training.recipe import read_recipe
from talkconv.training.validate import Validation, score_outputs, spread, validation_loss
from tests.training.cases import write_recipe


@pytest.fixture
def network(tmp_path, prepared):
    """Return a new network of a recipe, and its data."""

    def make(task="translation", **sections):
        recipe = read_recipe(write_recipe(tmp_path / "tiny.toml", task, **sections))
        data = open_prepared(prepared(task))
        return build_model(recipe, len(data.tokenizer())).eval(), data, recipe

    return make


def one_by_one(model, data) -> float:
    """Compute the loss by its definition, row by row, without padding or batches."""
    total, tokens = 0.0, 0
    examples = examples_of(data.split("valid"))
    for row in range(len(examples.lengths[0])):
        batch = examples.collate(np.array([row]))
        shift = 1 if isinstance(model, TaLKConvForCausalLM) else 0
        # asked for a loss, an adaptive softmax gives that alone
        out = model(batch["input_ids"]) if shift else model(**batch)
        logits = out.logits[0, : out.logits.shape[1] - shift]
        targets = batch["labels"][0, shift:]
        total += F.cross_entropy(logits, targets, reduction="sum").item()
        tokens += len(targets)
    return total / tokens


@torch.no_grad()
@pytest.mark.parametrize("task", ["translation", "language_modelling"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_mean_over_all_tokens_without_smoothing(task, smoothing, network):
    model, data, _ = network(task, model=dict(label_smoothing=smoothing))
    batches = Batches(examples_of(data.split("valid")), tokens=40)
    assert len(batches) > 1
    loss = validation_loss(model, batches, lambda total: total)
    assert loss == pytest.approx(one_by_one(model, data), rel=1e-5)


@torch.no_grad()
def test_the_loss_of_an_adaptive_softmax(network):
    model, data, _ = network(
        "language_modelling", model=dict(adaptive_cutoffs=[8, 16], adaptive_factor=2)
    )
    batches = Batches(examples_of(data.split("valid")), tokens=40)
    loss = validation_loss(model, batches, lambda total: total)
    assert loss == pytest.approx(one_by_one(model, data), rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("processes", [2, 3, 7])
def test_processes_share_the_loss(processes, network):
    model, data, _ = network()
    batches = Batches(examples_of(data.split("valid")), tokens=20)
    parts = []
    for process in range(processes):

        def note(total):
            parts.append(total)
            return total

        validation_loss(model, batches, note, process=process, processes=processes)
    loss, tokens = torch.stack(parts).sum(0).tolist()
    assert loss / tokens == pytest.approx(validation_loss(model, batches, lambda total: total))


class Copier:
    """Writes each source with its last word left out."""

    def __call__(self, model, tokenizer, texts, settings):
        for text in texts:
            yield [type("Output", (), {"text": text.rsplit(" ", 1)[0]})]


class Words:
    def tokenized_text(self, text):
        return text


TEXTS = (["a b c d e f", "g h i j k l"], ["a b c d e f", "g h i j k l"])


def test_bleu_is_of_all_sentences_in_their_order(monkeypatch):
    monkeypatch.setattr("talkconv.training.validate.generate_texts", Copier())
    settings = GenerationSettings()
    written = []
    for process in (1, 0):

        def gather(mine):
            written.extend(mine)
            return written if len(written) == 2 else [(0, ""), (1, "")]

        scores = score_outputs(
            "bleu", None, Words(), TEXTS, settings, gather, process=process, processes=2
        )
    # all precisions are 1, and five words stand for six
    assert scores == {"bleu": pytest.approx(100 * math.exp(1 - 6 / 5))}


def test_rouge_is_the_mean_of_its_three(monkeypatch):
    monkeypatch.setattr("talkconv.training.validate.generate_texts", Copier())
    settings = GenerationSettings()
    scores = score_outputs("rouge", None, Words(), TEXTS, settings, lambda mine: mine)
    # five of six words and four of five pairs: F1 = 2 * hits / (found + wanted)
    assert scores["rouge1"] == pytest.approx(100 * 10 / 11)
    assert scores["rouge2"] == pytest.approx(100 * 8 / 9)
    assert scores["rougeL"] == pytest.approx(100 * 10 / 11)
    assert scores["rouge"] == pytest.approx(sum(list(scores.values())[1:]) / 3)


def test_a_limit_takes_sentences_from_everywhere():
    texts = ([str(n) for n in range(10)], [str(-n) for n in range(10)])
    assert spread(texts, 4) == (["0", "2", "5", "7"], ["0", "-2", "-5", "-7"])
    assert spread(texts, None) == texts
    assert spread(texts, 99) == texts


def test_there_must_be_a_validation_set(network):
    _, data, recipe = network()
    del data.card["splits"]["valid"]
    with pytest.raises(
        ValueError, match=r"must have a validation set, got \['train', 'test'\]: add"
    ):
        Validation(data, data.tokenizer(), recipe)
