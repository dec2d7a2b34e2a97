import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data.prepared import open_prepared
from talkconv.evaluation import evaluate
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.evaluation.evaluate import (
    PROTOCOLS,
    evaluate_files,
    evaluate_run,
    generation_settings,
    metrics_of,
    read_lines,
    run_metrics,
)
from talkconv.evaluation.metric import score
from talkconv.evaluation.perplexity import perplexity
from talkconv.generation.text_generator import Output, generate_texts
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from tests.data.cases import PAIRS
from tests.evaluation.runs import (
    SETTINGS,
    language_modelling,
    run_on,
    summarization,
    translation,
)


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    paper = {"table": 3, "metric": "tokenized_bleu", "score": 35.5}
    return run_on(translation(folder), folder / "run", paper=paper)


@pytest.fixture(scope="module")
def summarized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summarization")
    return run_on(summarization(folder), folder / "run")


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_modelling")
    return run_on(language_modelling(folder), folder / "run")


def names(report):
    return [score.name for score in report.scores]


def test_a_translation_run(translated):
    report = evaluate_run(translated)
    assert names(report) == ["BLEU, tokenized", "sacreBLEU", "chrF2"]
    assert report.paper == {"BLEU, tokenized": 35.5}
    run = open_run(translated)
    sources, references = open_prepared(run.card.data).texts("test")
    outputs = [o.text for (o,) in generate_texts(run.model, run.tokenizer, sources, SETTINGS)]
    written = read_lines(translated / "evaluation" / "test.hypotheses")
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
    """A network that writes the references, token by token, has all."""
    run = open_run(translated)
    _, references = open_prepared(run.card.data).texts("test")
    ids = [run.tokenizer(text_target=line)["input_ids"][:-1] for line in references]
    perfect = [
        [Output(run.tokenizer.decode(row, skip_special_tokens=True), 0.0, row)] for row in ids
    ]
    monkeypatch.setattr(
        evaluate.TextGenerator, "outputs", lambda self, sources, on_done: iter(perfect)
    )
    report = evaluate_run(translated)
    assert [round(score.value, 6) for score in report.scores] == [100, 100, 100]
    # doesn't is two words to Moses
    assert "hyp_len=14" in report.scores[0].text


def test_compounds_are_split_for_english_german_alone(translated):
    run = open_run(translated)
    other = replace(run, card=replace(run.card, source_lang="en", target_lang="de"))
    assert [metric.name for metric in run_metrics(other)][:2] == [
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


@pytest.fixture
def files(tmp_path):
    def write(**contents):
        paths = []
        for name, lines in contents.items():
            paths.append(tmp_path / name)
            paths[-1].write_text("".join(f"{line}\n" for line in lines))
        return paths

    return write


def test_files_without_a_model(files):
    hypotheses, references = files(h=["the cat sat there"] * 3, r=["the cat sat here"] * 3)
    report = evaluate_files(hypotheses, references, ["tokenized-lc", "rouge"])
    assert names(report)[0] == "BLEU, tokenized, lowercased"
    assert report.scores[1].value == pytest.approx(75)


def test_a_baseline(files):
    lines = [f"a{i} b{i} c{i} d{i} e{i}" for i in range(40)]
    worse = [line.replace("c", "x") for line in lines]
    hypotheses, references, baseline = files(h=lines, r=lines, b=worse)
    report = evaluate_files(hypotheses, references, ["tokenized", "rouge"], baseline)
    assert len(report.comparisons) == 5
    assert all(each.difference > 0 and each.p_value < 0.01 for each in report.comparisons)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_gives_all_to_the_reference(protocol):
    lines = ["The quick brown fox jumps .", "Well-known dogs sleep here ."]
    for metric in metrics_of([protocol]):
        assert score(metric, lines, lines).value == pytest.approx(100)


def test_the_last_line_may_lack_its_end(tmp_path):
    path = tmp_path / "f"
    for text, lines in {
        "a\nb": 2,
        "a\nb\n": 2,
        "a\n\n": 2,
        "": 0,
        "\n": 1,
        "a\r\nb\r\n": 2,
    }.items():
        path.write_bytes(text.encode())
        assert len(read_lines(path)) == lines
    assert read_lines(path) == ["a", "b"]


def command(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_the_command_prints_one_table(translated):
    answer = command(translated)
    assert answer.exit_code == 0, answer.output
    assert "BLEU, tokenized" in answer.stdout
    assert "35.5" in answer.stdout
    assert "multi-bleu.perl: BLEU = " in answer.stdout
    assert f"written: {translated}/evaluation/test.json" in answer.stdout


def test_the_command_scores_files(files):
    hypotheses, references = files(h=["a b c d e"], r=["a b c d e"])
    answer = command("--hypotheses", hypotheses, "--references", references)
    assert answer.exit_code == 0, answer.output
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a run (talkconv evaluate RUN), or files"),
        (["--hypotheses", "H"], "give a run"),
        (["--hypotheses", "H", "--references", "R"], "H has 2 lines and R has 3"),
        (["--hypotheses", "R", "--references", "R", "--baseline", "H"], "H has 2 lines and R has"),
        (["--hypotheses", "R", "--references", "R", "--protocol", "bleu"], "protocol must be one"),
        (["--hypotheses", "gone", "--references", "R"], "No such file"),
        (["RUN", "--split", "dev"], "has the splits"),
        (["RUN", "--protocol", "chrf"], "leave --protocol away"),
        (["RUN", "--baseline", "H"], "H has 2 lines and the split has 3"),
        (["RUN", "--data", "gone"], "must be a prepared folder"),
    ],
)
def test_mistakes_are_one_message(translated, files, arguments, message):
    hypotheses, references = files(h=["a", "b"], r=["a", "b", "c"])
    known = {"H": hypotheses, "R": references, "RUN": translated}
    answer = command(*(known.get(each, each) for each in arguments))
    assert answer.exit_code == 1
    for name in "HR":
        message = message.replace(f"{name} has", f"{known[name]} has")
    assert message in answer.stderr
    assert "Traceback" not in answer.output


def test_a_plain_model_names_no_data(translated):
    answer = command(translated / "best")
    assert answer.exit_code == 1
    assert "names no data: give --data DATA, or write outputs" in answer.stderr
