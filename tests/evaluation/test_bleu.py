import math

import pytest

from talkconv.evaluation.bleu import (
    BLEU_PROTOCOLS,
    TOKENIZED_PROTOCOLS,
    bleu_metric,
    corpus_bleu,
    split_compounds,
)

SYSTEMS = ["LIUM-NMT.4900", "online-B.0", "C-3MA.4959"]
# a system has 3 004 lines, and scoring them takes up to two seconds
ONE_OR_ALL = [SYSTEMS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SYSTEMS[1:])]
# what the tables of expected answers call our protocols
MULTI_BLEU = {"tok": "tokenized", "tok-lc": "tokenized-lc", "tok-atat": "compound"}
MULTI_BLEU["detok"] = "detok"
SACREBLEU = {"13a": "sacrebleu", "intl": "sacrebleu-intl", "chrF2": "chrf"}


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def expected(folder, table):
    rows = (line.split("\t") for line in lines(folder / table))
    return {(system, protocol): answer for system, protocol, answer in rows}


def scored(folder, system, protocol):
    end = ".tok.de" if protocol in TOKENIZED_PROTOCOLS else ".de"
    return corpus_bleu(
        lines(folder / f"{system}{end}"), lines(folder / f"reference{end}"), protocol
    )


@pytest.mark.parametrize("system", ONE_OR_ALL)
@pytest.mark.parametrize("theirs", MULTI_BLEU)
def test_prints_what_moses_prints(fixtures, system, theirs):
    folder = fixtures / "bleu"
    answer = expected(folder, "expected_multibleu.tsv")[system, theirs]
    assert scored(folder, system, MULTI_BLEU[theirs]).text == answer


@pytest.mark.parametrize("system", ONE_OR_ALL)
@pytest.mark.parametrize("theirs", SACREBLEU)
def test_prints_what_sacrebleu_prints(fixtures, system, theirs):
    folder = fixtures / "bleu"
    answer = expected(folder, "expected_sacrebleu.tsv")[system, theirs]
    assert scored(folder, system, SACREBLEU[theirs]).text == answer


@pytest.mark.parametrize("system", [*SYSTEMS, "reference"])
def test_compounds_are_split_as_the_script_does(fixtures, system):
    plain, split = (lines(fixtures / "bleu" / f"{system}.{end}.de") for end in ("tok", "tok.atat"))
    assert [split_compounds(line) for line in plain] == split


def test_a_score_worked_out_by_hand():
    # matches: 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, 0 of 3 quadruples in the first line;
    # all of the second's 4, 3, 2, 1. Together 9/10, 6/8, 3/6, 1/4
    hypotheses = ["a b c x d e", "p q r s"]
    references = ["a b c d e f g", "p q r s"]
    found = corpus_bleu(hypotheses, references, "tokenized")
    mean = (9 / 10 * 6 / 8 * 3 / 6 * 1 / 4) ** 0.25
    assert found.value == pytest.approx(100 * math.exp(1 - 11 / 10) * mean)
    assert found.text == (
        "BLEU = 48.77, 90.0/75.0/50.0/25.0 (BP=0.905, ratio=0.909, hyp_len=10, ref_len=11)"
    )


def test_without_a_match_of_four_words_multi_bleu_is_zero_and_sacrebleu_is_smoothed():
    pair = (["a b c x"], ["a b c d"])
    assert corpus_bleu(*pair, "tokenized").value == 0
    assert corpus_bleu(*pair, "sacrebleu").value == pytest.approx(
        100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25
    )


def test_perl_splits_at_ascii_spaces_alone():
    assert "hyp_len=2" in corpus_bleu(["a\u00a0b\u3000c d"], ["a b c d"], "tokenized").text


def test_perl_lowercases_ascii_alone():
    metric = bleu_metric("tokenized-lc")
    assert metric.prepare("ÄPFEL Und") == "Äpfel und"


def test_perl_counts_bytes_around_hyphens():
    at = " ##AT##-##AT## "
    assert split_compounds("a-b-c") == f"a{at}b-c"
    assert split_compounds("ä-ö-ü") == f"ä{at}ö{at}ü"
    assert split_compounds("- a -b c-") == "- a -b c-"


def test_lowercasing_raises_a_score_and_compounds_lengthen_lines():
    pair = (["Well-known Things exist here"], ["well-known things exist here"])
    assert corpus_bleu(*pair, "tokenized").value < corpus_bleu(*pair, "tokenized-lc").value
    assert "hyp_len=6" in corpus_bleu(*pair, "compound").text


def test_signatures_tell_protocols_apart():
    signatures = {bleu_metric(protocol).signature for protocol in BLEU_PROTOCOLS}
    assert len(signatures) == len(BLEU_PROTOCOLS)
    assert "tok:13a|smooth:exp" in bleu_metric("sacrebleu").signature


def test_an_unknown_protocol_gets_a_suggestion():
    with pytest.raises(ValueError, match="did you mean 'tokenized'"):
        corpus_bleu(["a"], ["a"], "tokenised")


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [(["a"], ["a", "b"], "got 1 and 2 lines"), ([], [], "at least one line")],
)
def test_lines_must_match(hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        corpus_bleu(hypotheses, references)
