import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    Trainer,
    TrainingArguments,
    pipeline,
)

from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForSequenceClassification,
    TaLKConvForTokenClassification,
)
from talkconv.models.classification import pool
from tests.evaluation.cases import tokenizer
from tests.models.cases import MIXERS, SIZES, language_model, seq2seq, tokens

ENCODER = dict(encoder_l_max=[1, 3], encoder_r_max=[1, 3])


def classifier(kind=TaLKConvForSequenceClassification, **changes):
    torch.manual_seed(0)
    settings = {**SIZES, **ENCODER, "num_labels": 3, **changes}
    return kind(TaLKConvConfig(**settings)).eval()


def near(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("pooling", ["mean", "max"])
@torch.no_grad()
def test_padding_changes_nothing(mixer, pooling):
    model = classifier(encoder_mixer=mixer, pooling=pooling)
    words = tokens(2, 6)
    expected = model(words[1:, :4]).logits
    words[1, 4:] = 1
    near(model(words).logits[1:], expected)
    near(model(words, attention_mask=(words != 1).long()).logits[1:], expected)


def test_pooling_by_hand():
    states = torch.tensor([[[1.0, 5.0], [3.0, -7.0], [9.0, 9.0]]])
    mask = torch.tensor([[False, False, True]])
    assert pool(states, mask, "mean").tolist() == [[2.0, -1.0]]
    assert pool(states, mask, "max").tolist() == [[3.0, 5.0]]
    assert pool(states, None, "max").tolist() == [[9.0, 9.0]]
    assert pool(states, mask | True, "mean").tolist() == [[0.0, 0.0]]
    with pytest.raises(ValueError, match="pooling must be one of"):
        TaLKConvConfig(pooling="first")


@pytest.mark.parametrize(
    ("kind", "labels", "num_labels"),
    [
        ("single_label_classification", torch.tensor([0, 2]), 3),
        ("multi_label_classification", torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]), 3),
        ("regression", torch.tensor([0.3, -1.2]), 1),
    ],
)
def test_each_kind_of_labels_has_its_loss(kind, labels, num_labels):
    model = classifier(num_labels=num_labels, problem_type=kind)
    output = model(tokens(2, 5), labels=labels)
    expected = {
        "single_label_classification": torch.nn.functional.cross_entropy,
        "multi_label_classification": torch.nn.functional.binary_cross_entropy_with_logits,
        "regression": torch.nn.functional.mse_loss,
    }[kind]
    near(output.loss, expected(output.logits.squeeze(-1), labels))


def test_ignored_tokens_have_no_loss():
    model = classifier(TaLKConvForTokenClassification)
    words = tokens(2, 5)
    labels = words % 3
    labels[0, 2:] = -100
    output = model(words, labels=labels)
    scores = output.logits.log_softmax(-1)
    places = [(0, 0), (0, 1), *((1, t) for t in range(5))]
    near(output.loss, -torch.stack([scores[b, t, labels[b, t]] for b, t in places]).mean())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "auto", [AutoModelForSequenceClassification, AutoModelForTokenClassification]
)
@torch.no_grad()
def test_the_encoder_of_a_translation_is_kept(shared, auto, tmp_path):
    settings = dict(share_embeddings=True, encoder_vocab_size=None) if shared else {}
    network = seq2seq(**settings)
    network.save_pretrained(tmp_path / "translation")
    model = auto.from_pretrained(tmp_path / "translation", num_labels=4).eval()
    words = tokens(2, 6)
    assert torch.equal(model.encoder(words)[0], network.encoder(words)[0])
    assert not hasattr(model, "decoder")
    assert not model.config.is_encoder_decoder
    assert model.config.vocab_size == network.encoder.embed_tokens.num_embeddings
    direct = type(model).from_pretrained(tmp_path / "translation", num_labels=4)
    assert torch.equal(direct.encoder(words)[0], network.encoder(words)[0])
    # the saved classifier can be loaded by itself
    model.save_pretrained(tmp_path / "classifier")
    read = auto.from_pretrained(tmp_path / "classifier")
    assert torch.equal(read(words).logits, model(words).logits)


def test_a_language_model_is_refused(tmp_path):
    language_model().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="a classifier needs encoder layers"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path)


def test_the_config_of_the_caller_stays_as_it_is():
    config = TaLKConvConfig(**SIZES, **ENCODER, share_embeddings=True)
    TaLKConvForSequenceClassification(config)
    assert config.is_encoder_decoder
    assert config.share_embeddings
    assert config.decoder_l_max == SIZES["decoder_l_max"]


def test_the_trainer_of_transformers_trains_it(tmp_path):
    """Texts with word 5 belong to class 1. A few steps are enough to learn that."""
    words = tokens(64, 6, vocab_size=20)
    words[:, 2] = torch.where(torch.arange(64) % 2 == 0, 5, 6)
    rows = [
        dict(input_ids=row.tolist(), labels=int(row[2] == 5), attention_mask=[1] * 6)
        for row in words
    ]
    model = classifier(num_labels=2, dropout=0.0)
    settings = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=60,
        per_device_train_batch_size=16,
        learning_rate=1e-2,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        seed=1,
    )
    Trainer(model, settings, train_dataset=rows).train()
    found = model.eval()(words).logits.argmax(-1)
    assert (found == (words[:, 2] == 5).long()).float().mean() == 1


@pytest.mark.parametrize("task", ["text-classification", "token-classification"])
def test_pipelines_open_its_folder(task, tmp_path):
    kind = {
        "text-classification": TaLKConvForSequenceClassification,
        "token-classification": TaLKConvForTokenClassification,
    }[task]
    model = classifier(kind, id2label={0: "low", 1: "high", 2: "other"})
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    (found, *_) = pipeline(task, model=str(tmp_path), device="cpu")(["w1 w2 w3"])
    found = found[0] if isinstance(found, list) else found
    assert found.get("label", found.get("entity")) in {"low", "high", "other"}
