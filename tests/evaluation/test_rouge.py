import itertools
import random
from importlib.metadata import version

import pytest
from rouge_score.rouge_scorer import RougeScorer

from talkconv.evaluation.rouge import (
    ALONE,
    ATTACHED,
    BY_SENTENCES,
    IMPLEMENTATIONS,
    KINDS,
    ROUGE_SCORE_VERSION,
    RougeMetric,
    rouge,
    rouge_metrics,
)

# the output of ROUGE-1.5.5 for fixtures/rouge; it is a mean over random samples, and this alone
# changes the second digit after the point
ORIGINAL = {"ROUGE-1": 47.598, "ROUGE-2": 24.558, "ROUGE-L": 39.422}


@pytest.fixture(scope="module")
def xsum(fixtures):
    return [
        (fixtures / "rouge" / f"xsum.{side}").read_text(encoding="utf-8").split("\n")[:-1]
        for side in ("system", "reference")
    ]


def test_agrees_with_the_original_program(xsum):
    scores = rouge(*xsum)
    assert [each.value for each in scores] == pytest.approx(list(ORIGINAL.values()), abs=0.02)


def test_the_interval_holds_the_score(xsum):
    for each in rouge(*xsum, interval=True):
        low, high = each.interval
        assert low < each.value < high
        # two standard errors of 11 334 lines, each way
        assert 0.4 < high - low < 1.0


def test_is_rouge_score_where_asked_for(xsum):
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    for hypothesis, reference in itertools.islice(zip(*xsum, strict=True), 300):
        theirs = scorer.score(reference, hypothesis)
        for kind, name in zip(KINDS, theirs, strict=False):
            ours = RougeMetric(kind, "rouge-score").f1(hypothesis, reference)
            assert ours == pytest.approx(theirs[name].fmeasure)


def test_scores_worked_out_by_hand():
    hypothesis, reference = "the cat sat on a mat", "the cat is on the mat today"
    found = {each.name: each.value for each in rouge([hypothesis], [reference])}
    # words in common: the cat on mat, of 6 and 7
    assert found["ROUGE-1 F1"] == pytest.approx(100 * 2 * 4 / 13)
    # pairs in common: the cat, of 5 and 6
    assert found["ROUGE-2 F1"] == pytest.approx(100 * 2 * 1 / 11)
    # the cat on mat stand in this order in both
    assert found["ROUGE-L F1"] == pytest.approx(100 * 2 * 4 / 13)


def test_the_mean_is_that_of_the_original_program_over_the_lines(xsum):
    # its scores of all lines (ROUGE-1.5.5.pl -d), averaged
    expected = [47.6146, 24.5708, 39.4330]
    assert [each.value for each in rouge(*xsum)] == pytest.approx(expected, abs=2e-4)


def test_a_full_stop_within_a_word_ends_no_sentence():
    # "u.s." is two words to ROUGE. As one sentence, a b c d and c d a b share two words
    metric = RougeMetric(BY_SENTENCES)
    hypothesis, reference = "aa u.s. bb cc", "bb cc aa u.s."
    assert metric.f1(hypothesis, reference) == pytest.approx(3 / 5)
    # splitting after "u.s." would count all words
    split = RougeMetric(BY_SENTENCES, sentences_end=ATTACHED)
    assert split.f1(hypothesis, reference) == pytest.approx(1)


def test_raw_text_is_split_where_a_terminator_ends_a_word():
    raw, tokenized = "Dogs bark. Cats sleep.", "dogs bark . cats sleep ."
    for text, end in ((raw, ATTACHED), (tokenized, ALONE)):
        (metric,) = rouge_metrics([text], kinds=[BY_SENTENCES])
        assert metric.sentences_end == end
        other = " ".join(reversed(text.replace(".", ". |").split(" | "))).replace("|", "").strip()
        assert metric.f1(other, text) == pytest.approx(1)


def test_the_signature_names_the_split():
    for end in (ALONE, ATTACHED):
        signature = RougeMetric(BY_SENTENCES, sentences_end=end).signature
        assert signature.endswith(f"sentences end after {end}")
    assert "sentences" not in RougeMetric("ROUGE-L").signature


def test_the_signature_names_the_version_that_was_compared_with():
    assert version("rouge-score") == ROUGE_SCORE_VERSION
    assert ROUGE_SCORE_VERSION in RougeMetric("ROUGE-1", "rouge-score").signature


def test_sentences_are_matched_in_any_order():
    hypothesis, reference = "dogs bark . cats sleep .", "cats sleep . dogs bark ."
    assert RougeMetric("ROUGE-L").f1(hypothesis, reference) == pytest.approx(0.5)
    assert RougeMetric("ROUGE-L, sentences").f1(hypothesis, reference) == pytest.approx(1)


def test_a_word_counts_once_however_many_sentences_it_matches():
    # "cats" of the output can stand for one of the reference's two
    metric = RougeMetric("ROUGE-L, sentences")
    assert metric.f1("cats .", "cats . cats .") == pytest.approx(2 * 1 / 3)


def test_sentences_agree_with_rouge_score():
    random.seed(0)
    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    metric = RougeMetric("ROUGE-L, sentences", "rouge-score")
    for _ in range(200):
        texts = [
            [" ".join(random.choices("abcd", k=random.randint(1, 7))) + " ." for _ in range(3)]
            for _ in range(2)
        ]
        theirs = scorer.score("\n".join(texts[1]), "\n".join(texts[0]))["rougeLsum"].fmeasure
        assert metric.f1(" ".join(texts[0]), " ".join(texts[1])) == pytest.approx(theirs)


def test_the_two_implementations_differ_where_forms_are_irregular():
    first, second = (
        rouge(["they said it"], ["they say it"], implementation=name)[0].value
        for name in IMPLEMENTATIONS
    )
    assert first == pytest.approx(100)
    assert second == pytest.approx(100 * 2 / 3)


def test_an_empty_summary_scores_nothing():
    assert [each.value for each in rouge([""], ["a b c"])] == [0, 0, 0]


def test_words_of_three_letters_are_not_stemmed():
    assert RougeMetric("ROUGE-1").f1("is as", "i a") == 0


@pytest.mark.parametrize(
    "bad",
    [
        dict(kind="ROUGE-9"),
        dict(kind="ROUGE-1", implementation="x"),
        dict(kind="ROUGE-1", sentences_end="x"),
    ],
)
def test_unknown_kinds_and_implementations(bad):
    with pytest.raises(ValueError, match="must be one of"):
        RougeMetric(**bad)
