"""The F1 of ROUGE-1, -2 and -L, as ROUGE-1.5.5 computes it with `-n 2 -m -a -f A -p 0.5`.

Google's rouge-score, which many report now, stems words differently (stems.py). Both can be
computed, and the signature in a report says which one it is. We do not use the package rouge-score
for that, because it makes a table of n * m Python integers for each pair of summaries. The tests
show that the numbers are the same.

ROUGE-1.5.5 prints the mean over random bootstrap samples. Here it is the mean over the lines, which
is the same each time.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from talkconv.evaluation.common_subsequence import common_length, common_positions
from talkconv.evaluation.metric import Score, Statistics, check_lines, score_of
from talkconv.evaluation.stems import stem_for_rouge, stem_for_rouge_score

_STEMMERS = {"ROUGE-1.5.5": stem_for_rouge, "rouge-score": stem_for_rouge_score}
IMPLEMENTATIONS = tuple(_STEMMERS)
# The version of the package rouge-score that the tests compare with.
ROUGE_SCORE_VERSION = "0.1.2"
BY_SENTENCES = "ROUGE-L, sentences"
KINDS = ("ROUGE-1", "ROUGE-2", "ROUGE-L", BY_SENTENCES)

Words = tuple[str, ...]

_NO_WORD = re.compile(r"[^a-z0-9]+")
# How a line is split into sentences. In tokenized text a full stop that ends a sentence is a word
# of its own, while that of an abbreviation ("u.s. republicans") is not.
ALONE, ATTACHED = ".!? standing alone", ".!? before a space"
_SENTENCE_ENDS = {ALONE: re.compile(r"(?<=\s[.!?])\s+"), ATTACHED: re.compile(r"(?<=[.!?])\s+")}


def sentence_end(references: Sequence[str]) -> str:
    """Return the rule for the end of a sentence in these lines, which may be tokenized or not.

    >>> sentence_end(["u.s. troops left . they"]), sentence_end(["They left. So did he."])
    ('.!? standing alone', '.!? before a space')
    """
    tokenized = any(re.search(r"\s[.!?](\s|$)", line) for line in references)
    return ALONE if tokenized else ATTACHED


@dataclass(frozen=True)
class RougeMetric:
    """One kind of ROUGE. Each line is a summary."""

    kind: str
    implementation: str = "ROUGE-1.5.5"
    sentences_end: str = ALONE

    def __post_init__(self) -> None:
        for name, known in (
            ("kind", KINDS),
            ("implementation", IMPLEMENTATIONS),
            ("sentences_end", tuple(_SENTENCE_ENDS)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")

    @property
    def name(self) -> str:
        return f"{self.kind} F1"

    @property
    def signature(self) -> str:
        known = {
            "ROUGE-1.5.5": "as ROUGE-1.5.5 -n 2 -m -a -f A -p 0.5",
            "rouge-score": f"as rouge-score {ROUGE_SCORE_VERSION}, use_stemmer=True",
        }[self.implementation]
        if self.kind != BY_SENTENCES:
            return known
        return f"{known}, sentences end after {self.sentences_end}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Statistics:
        pairs = zip(hypotheses, references, strict=True)
        return np.array([(self.f1(*pair), 1.0) for pair in pairs])

    def f1(self, hypothesis: str, reference: str) -> float:
        """Return the score of one summary, from 0 to 1."""
        if self.kind == BY_SENTENCES:
            return self._sentences_f1(hypothesis, reference)
        found, wanted = self._words(hypothesis), self._words(reference)
        if self.kind == "ROUGE-L":
            return _f1(common_length(wanted, found), len(found), len(wanted))
        n = int(self.kind[-1])
        ours, theirs = _ngrams(found, n), _ngrams(wanted, n)
        return _f1((ours & theirs).total(), ours.total(), theirs.total())

    def _sentences_f1(self, hypothesis: str, reference: str) -> float:
        """Return the F1 of the words in common subsequences of a reference and an output sentence.

        A word of the output counts once, however many sentences of the reference it matches.
        """
        found, wanted = self._sentences(hypothesis), self._sentences(reference)
        left = Counter(word for sentence in found for word in sentence)
        hits = 0
        for sentence in wanted:
            union = {at for output in found for at in common_positions(sentence, output)}
            for at in sorted(union):
                if left[sentence[at]] > 0:
                    left[sentence[at]] -= 1
                    hits += 1
        return _f1(hits, sum(map(len, found)), sum(map(len, wanted)))

    def _sentences(self, text: str) -> list[Words]:
        return [self._words(part) for part in _SENTENCE_ENDS[self.sentences_end].split(text)]

    def _words(self, text: str) -> Words:
        return words_of(text, self.implementation)

    def value(self, total: Statistics) -> float:
        return float(100 * total[0] / total[1])

    def text(self, total: Statistics) -> str:
        return f"{self.name} = {self.value(total):.3f}"


def rouge_metrics(
    references: Sequence[str],
    *,
    kinds: Sequence[str] = KINDS,
    implementation: str = "ROUGE-1.5.5",
) -> list[RougeMetric]:
    """Return the metrics that fit these references, tokenized or not."""
    end = sentence_end(references)
    return [RougeMetric(kind, implementation, end) for kind in kinds]


def rouge(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    kinds: Sequence[str] = KINDS[:3],
    implementation: str = "ROUGE-1.5.5",
    interval: bool = False,
) -> list[Score]:
    """Score summaries, each of which is a line.

    >>> [round(each.value) for each in rouge(["the cat sat"], ["the cat slept"])]
    [67, 50, 67]
    """
    check_lines(hypotheses, references)
    return [
        score_of(metric, metric.statistics(hypotheses, references), interval=interval)
        for metric in rouge_metrics(references, kinds=kinds, implementation=implementation)
    ]


# Each kind of ROUGE asks for the same lines again. The cache holds both sides of a test set.
@lru_cache(maxsize=65_536)
def words_of(text: str, implementation: str) -> Words:
    """Split a text at everything but ASCII letters and digits, lowercase it, and stem its words.

    Words of up to three characters are not stemmed.
    """
    stem = _STEMMERS[implementation]
    words = _NO_WORD.sub(" ", text.lower()).split()
    return tuple(stem(word) if len(word) > 3 else word for word in words)


def _ngrams(words: Words, n: int) -> Counter[Words]:
    return Counter(words[at : at + n] for at in range(len(words) - n + 1))


def _f1(hits: int, found: int, wanted: int) -> float:
    return 2 * hits / (found + wanted) if hits else 0.0
