import json
from dataclasses import replace

import pytest

from talkconv.data.prepared import open_prepared
from talkconv.evaluation import evaluate_run as module
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.evaluation.evaluate_files import lines_of
from talkconv.evaluation.evaluate_run import evaluate_run, generation_settings, run_metrics
from talkconv.evaluation.perplexity import perplexity
from talkconv.generation.text_generator import Output, generate_texts
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from tests.data.cases import PAIRS
from tests.evaluation.runs import SETTINGS, run_on, translation


def names(report):
    return [score.name for score in report.scores]


def test_a_translation_run(translated):
    report = evaluate_run(translated)
    assert names(report) == ["BLEU, tokenized", "sacreBLEU", "chrF2"]
    assert report.paper == {"BLEU, tokenized": 35.5}
    run = open_run(translated)
    sources, references = open_prepared(run.card.data).texts("test")
    outputs = [o.text for (o,) in generate_texts(run.model, run.tokenizer, sources, SETTINGS)]
    written = lines_of(translated / "evaluation" / "test.hypotheses")
    assert written == outputs
    assert report.scores[2].value == corpus_bleu(outputs, references, "chrf").value
    assert 0 < report.scores[2].value < 100


def test_the_report_is_written(translated):
    report = evaluate_run(translated, "valid")
    content = json.loads((translated / "evaluation" / "valid.json").read_text())
    assert [score["value"] for score in content["scores"]] == [s.value for s in report.scores]
    assert content["about"]["model"] == "best"
    assert content["about"]["generation"]["num_beams"] == 2
    assert content["about"]["lines"] == 3


def test_tokenized_bleu_compares_words_as_moses_splits_them(translated, monkeypatch):
    """A network that writes the references, token by token, has a score of 100."""
    run = open_run(translated)
    _, references = open_prepared(run.card.data).texts("test")
    ids = [run.tokenizer(text_target=line)["input_ids"][:-1] for line in references]
    perfect = [
        [Output(run.tokenizer.decode(row, skip_special_tokens=True), 0.0, row)] for row in ids
    ]
    monkeypatch.setattr(
        module.TextGenerator, "outputs", lambda self, sources, on_done: iter(perfect)
    )
    report = evaluate_run(translated)
    assert [round(score.value, 6) for score in report.scores] == [100, 100, 100]
    # doesn't is two words to Moses
    assert "hyp_len=14" in report.scores[0].text


def test_compounds_are_split_for_english_german_alone(translated):
    run = open_run(translated)
    other = replace(run, card=replace(run.card, source_lang="en", target_lang="de"))
    assert [metric.name for metric in run_metrics(other, [])][:2] == [
        "BLEU, tokenized",
        "BLEU, compounds split",
    ]


def test_lowercasing_networks_are_scored_lowercased(tmp_path):
    prepared = translation(tmp_path, replace(PAIRS, lowercase=True))
    report = evaluate_run(run_on(prepared, tmp_path / "run"))
    assert names(report)[1:] == ["sacreBLEU, lowercased", "chrF2, lowercased"]
    assert "case:lc" in report.scores[1].signature


def test_a_summarization_run(summarized):
    report = evaluate_run(summarized)
    assert names(report) == [
        "ROUGE-1 F1",
        "ROUGE-2 F1",
        "ROUGE-L F1",
        "ROUGE-L, sentences F1",
    ]
    assert all(score.interval is not None for score in report.scores)


def test_sources_are_cut_where_trainings_were(translated):
    run = open_run(translated)
    prepared = open_prepared(run.card.data)
    assert generation_settings(run, prepared) == SETTINGS
    card = {**prepared.card, "settings": {**prepared.card["settings"], "max_source_tokens": 7}}
    assert generation_settings(run, replace(prepared, card=card)).max_source_tokens == 7


def test_a_language_model_run(modelled):
    report = evaluate_run(modelled)
    assert names(report) == ["perplexity per token", "perplexity per word"]
    run = open_run(modelled)
    tokens = [t for row in open_prepared(run.card.data).split("test")["tokens"] for t in row]
    expected = perplexity(run.model, tokens, block=8, context=6)
    assert report.scores[0].value == pytest.approx(expected.per_token)
    # at word level a token is a word or a line's end
    assert report.scores[1].value == pytest.approx(expected.per_token)
    assert report.scores[0].signature == "blocks of 8 tokens, context 6"


def test_a_stream(modelled):
    blocks, stream = (evaluate_run(modelled, streaming=choice) for choice in (False, True))
    assert stream.scores[0].signature == "one stream, all tokens before"
    assert stream.scores[0].value != pytest.approx(blocks.scores[0].value, rel=1e-6)


def test_another_vocabulary_is_refused(translated, tmp_path):
    card = replace(RunCard.read(translated), fingerprint="other")
    other = run_on(translation(tmp_path), tmp_path / "run", fingerprint=card.fingerprint)
    with pytest.raises(ValueError, match="another vocabulary"):
        evaluate_run(other)


def test_a_stream_has_a_file_of_its_own(modelled):
    written = {}
    for streaming in (False, True):
        evaluate_run(modelled, streaming=streaming)
    for name in ("test.json", "test.streaming.json"):
        content = json.loads((modelled / "evaluation" / name).read_text())
        written[name] = content["scores"][0]["signature"]
    assert written == {
        "test.json": "blocks of 8 tokens, context 6",
        "test.streaming.json": "one stream, all tokens before",
    }


def test_only_language_models_read_a_stream(translated):
    with pytest.raises(ValueError, match="--streaming is for language models"):
        evaluate_run(translated, streaming=True)


def test_sentences_of_summaries_end_where_moses_splits_a_full_stop(summarized, monkeypatch):
    run = open_run(summarized)
    _, references = open_prepared(run.card.data).texts("test")
    tokenized = run.target_tokenizer.tokenized_text("Mr. Smith doesn't stop. He runs.")
    assert tokenized.endswith("stop . He runs .")
    outputs = [[Output(line, 0.0, [])] for line in references]
    monkeypatch.setattr(
        module.TextGenerator, "outputs", lambda self, sources, on_done: iter(outputs)
    )
    monkeypatch.setattr(
        type(run.target_tokenizer), "decode_tokenized", lambda self, ids: "doesn &apos;t stop ."
    )
    seen = {}
    original = module.score

    def spy(metric, hypotheses, references, interval):
        seen[metric.name] = hypotheses, metric.signature
        return original(metric, hypotheses, references, interval=interval)

    monkeypatch.setattr(module, "score", spy)
    evaluate_run(summarized)
    lines, signature = seen["ROUGE-L, sentences F1"]
    # the letters of &apos; would be a word
    assert lines[0] == "doesn 't stop ."
    assert signature.endswith("standing alone")
    assert seen["ROUGE-L F1"][0] == references


def test_a_report_says_where_and_when_and_how_fast(translated):
    about = evaluate_run(translated).about
    assert about["machine"]["date"]
    assert about["parameters"] == open_run(translated).model.num_parameters()
    assert 0 < about["generation_seconds"] <= about["seconds"]
