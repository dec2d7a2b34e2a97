"""ROUGE-1, -2 and -L, F1: as ROUGE-1.5.5 computes them with `-n 2 -m -a -f A -p 0.5`.

Google's rouge-score, which many report now, differs in two ways: it stems with NLTK's extensions
of Porter's algorithm, and it does without the list of irregular forms. Either can be asked for;
a report's signature says which one it was. ROUGE-1.5.5 prints the mean over its bootstrap samples,
which are drawn at random: here the mean is that of the lines, the same each time.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np
from nltk.stem.porter import PorterStemmer

from talkconv.evaluation.irregular import base_form
from talkconv.evaluation.metric import Score, Statistics, check_lines, score_of

IMPLEMENTATIONS = ("ROUGE-1.5.5", "rouge-score")
KINDS = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-L, sentences")

Words = tuple[str, ...]

_NO_WORD = re.compile(r"[^a-z0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class RougeMetric:
    """One kind of ROUGE; a line is a summary."""

    kind: str
    implementation: str = "ROUGE-1.5.5"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {self.kind!r}")
        if self.implementation not in IMPLEMENTATIONS:
            raise ValueError(
                f"implementation must be one of {IMPLEMENTATIONS}, got {self.implementation!r}"
            )

    @property
    def name(self) -> str:
        return f"{self.kind} F1"

    @property
    def signature(self) -> str:
        if self.implementation == "rouge-score":
            return f"as rouge-score {version('rouge-score')}, use_stemmer=True"
        return "as ROUGE-1.5.5 -n 2 -m -a -f A -p 0.5"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Statistics:
        pairs = zip(hypotheses, references, strict=True)
        return np.array([(self.f1(*pair), 1.0) for pair in pairs])

    def f1(self, hypothesis: str, reference: str) -> float:
        """Of one summary, 0 to 1."""
        if self.kind == "ROUGE-L, sentences":
            return self._sentences_f1(hypothesis, reference)
        found, wanted = self._words(hypothesis), self._words(reference)
        if self.kind == "ROUGE-L":
            return _f1(len(common_positions(wanted, found)), len(found), len(wanted))
        n = int(self.kind[-1])
        ours, theirs = _ngrams(found, n), _ngrams(wanted, n)
        return _f1((ours & theirs).total(), ours.total(), theirs.total())

    def _sentences_f1(self, hypothesis: str, reference: str) -> float:
        """Words of the reference that stand in a common subsequence with any output sentence."""
        found = [self._words(sentence) for sentence in _SENTENCE_END.split(hypothesis)]
        wanted = [self._words(sentence) for sentence in _SENTENCE_END.split(reference)]
        left = Counter(word for sentence in found for word in sentence)
        hits = 0
        for sentence in wanted:
            union = {at for output in found for at in common_positions(sentence, output)}
            for at in sorted(union):
                # a word of the output counts once, however many sentences it matches
                if left[sentence[at]] > 0:
                    left[sentence[at]] -= 1
                    hits += 1
        return _f1(hits, sum(map(len, found)), sum(map(len, wanted)))

    def _words(self, text: str) -> Words:
        return words_of(text, self.implementation)

    def value(self, total: Statistics) -> float:
        return float(100 * total[0] / total[1])

    def text(self, total: Statistics) -> str:
        return f"{self.name} = {self.value(total):.3f}"


def rouge(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    kinds: Sequence[str] = KINDS[:3],
    implementation: str = "ROUGE-1.5.5",
    interval: bool = False,
) -> list[Score]:
    """The scores of summaries, a line each.

    >>> [round(each.value) for each in rouge(["the cat sat"], ["the cat slept"])]
    [67, 50, 67]
    """
    check_lines(hypotheses, references)
    metrics = [RougeMetric(kind, implementation) for kind in kinds]
    return [
        score_of(metric, metric.statistics(hypotheses, references), interval=interval)
        for metric in metrics
    ]


# as many lines as a test set has on both sides: each kind of ROUGE asks for them again
@lru_cache(maxsize=65_536)
def words_of(text: str, implementation: str) -> Words:
    """Lowercased runs of ASCII letters and digits, those of more than three characters stemmed."""
    words = _NO_WORD.sub(" ", text.lower()).split()
    return tuple(_stem(word, implementation) if len(word) > 3 else word for word in words)


@lru_cache(maxsize=262_144)
def _stem(word: str, implementation: str) -> str:
    if implementation == "rouge-score":
        return str(_EXTENDED_PORTER.stem(word))
    return base_form(word) or str(_PORTER.stem(word))


# ROUGE-1.5.5 carries Porter's own program
_PORTER = PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)
_EXTENDED_PORTER = PorterStemmer()


def _ngrams(words: Words, n: int) -> Counter[Words]:
    return Counter(words[at : at + n] for at in range(len(words) - n + 1))


def _f1(hits: int, found: int, wanted: int) -> float:
    return 2 * hits / (found + wanted) if hits else 0.0


def common_positions(wanted: Words, found: Words) -> list[int]:
    """Where in `wanted` the words of a longest common subsequence with `found` stand.

    Row i of the usual table is one integer: bit j is 0 where the table rises from column j to
    j + 1, so that a whole row takes a few operations. Of several such subsequences this is the one
    that ROUGE-1.5.5 takes: from the end, it leaves out words of `wanted` first.
    """
    places: dict[str, int] = {}
    for j, word in enumerate(found):
        places[word] = places.get(word, 0) | 1 << j
    full = (1 << len(found)) - 1
    rows = [full]
    for word in wanted:
        row = rows[-1]
        matches = row & places.get(word, 0)
        rows.append((row + matches | row - matches) & full)
    positions = []
    i, j = len(wanted), len(found)
    while i and j:
        if wanted[i - 1] == found[j - 1]:
            i, j = i - 1, j - 1
            positions.append(i)
        # the fewer bits are set, the longer the subsequence of the first i and j words
        elif (rows[i - 1] & (1 << j) - 1).bit_count() > (rows[i] & (1 << j) - 1).bit_count():
            j -= 1
        else:
            i -= 1
    return positions[::-1]
