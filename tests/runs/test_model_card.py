import os

from huggingface_hub import ModelCard

from talkconv.runs.card import RunCard
from talkconv.runs.model_card import write_scores

CARD = RunCard(task="translation", recipe="mine", source_lang="de", target_lang="en")


def scores_of(folder):
    results = ModelCard.load(folder / "README.md").data.eval_results
    return {(r.dataset_split, r.metric_name): r.metric_value for r in results}


def test_scores_are_told_to_readers_and_to_the_hub(tmp_path):
    write_scores(tmp_path, CARD, "valid", {"bleu": 31.25, "loss": 1.5})
    assert scores_of(tmp_path) == {("valid", "bleu"): 31.25, ("valid", "loss"): 1.5}
    card = ModelCard.load(tmp_path / "README.md")
    assert (card.data.pipeline_tag, card.data.language) == ("translation", ["de", "en"])
    assert "| valid | bleu | 31.25 |" in card.text
    assert "translation from de to en" in " ".join(card.text.split())
    assert 'model.translate(["..."])' in card.text


def test_new_scores_of_a_split_replace_its_old_ones_alone(tmp_path):
    write_scores(tmp_path, CARD, "valid", {"bleu": 31.0})
    write_scores(tmp_path, CARD, "test", {"BLEU, tokenized": 30.0})
    write_scores(tmp_path, CARD, "test", {"BLEU, tokenized": 32.0})
    assert scores_of(tmp_path) == {("valid", "bleu"): 31.0, ("test", "BLEU, tokenized"): 32.0}


def test_a_linked_file_is_replaced_and_not_changed(tmp_path):
    for name in ("best", "other"):
        (tmp_path / name).mkdir()
    write_scores(tmp_path / "other", CARD, "valid", {"bleu": 1.0})
    os.link(tmp_path / "other" / "README.md", tmp_path / "best" / "README.md")
    write_scores(tmp_path / "best", CARD, "valid", {"bleu": 2.0})
    assert scores_of(tmp_path / "other") == {("valid", "bleu"): 1.0}


def test_a_language_model_completes(tmp_path):
    write_scores(tmp_path, RunCard(task="language_modelling", recipe="lm"), "valid", {"loss": 4.0})
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.pipeline_tag == "text-generation"
    assert "model.complete(" in card.text
