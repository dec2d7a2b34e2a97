"""BLEU in each form that papers report, and chrF.

sacreBLEU counts the n-grams. The protocols differ in the rules before and after the count.

| protocol       | what it is                                                                |
|----------------|---------------------------------------------------------------------------|
| tokenized      | Moses' multi-bleu.perl on text that is tokenized already                  |
| tokenized-lc   | the same with -lc                                                         |
| compound       | the same after hyphenated compounds are split: English-German since 2017  |
| detok          | Moses' multi-bleu-detok.perl on raw text                                  |
| sacrebleu      | sacreBLEU's default (13a) on raw text: the number to compare across papers |
| sacrebleu-lc   | the same lowercased, for networks that write lowercase                    |
| sacrebleu-intl | its international tokenization                                            |
| chrf, chrf-lc  | chrF2 on raw text                                                         |
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from talkconv.evaluation.metric import Score, Statistics, score
from talkconv.messages import did_you_mean

# Perl reads bytes, so it splits only at the spaces of ASCII. Python splits at these too, so each is
# replaced by a letter that occurs in no text.
_SPACES = "\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_OTHER_SPACES = {ord(space): 0xE000 + index for index, space in enumerate(_SPACES)}
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
# A hyphen between two characters. Perl matches bytes, and matches cannot overlap, so it finds one
# hyphen in a-b-c and both in ä-ö-ü.
_COMPOUND = re.compile(rb"(\S)-(\S)")


@dataclass(frozen=True)
class SacreMetric:
    """A metric of sacreBLEU. If `moses` names a script, it prepares the text like that script."""

    name: str
    counter: Any
    # the script whose rules and form of output are used; None means sacreBLEU's own
    moses: str | None = None
    lowercase: bool = False
    compounds: bool = False

    @property
    def signature(self) -> str:
        if self.moses is not None:
            return self.moses
        # sacreBLEU sets this only after it has seen references
        self.counter.num_refs = 1
        return str(self.counter.get_signature())

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Statistics:
        # sacreBLEU's own tests of significance use these statistics
        counted = self.counter._extract_corpus_statistics(
            [self.prepare(line) for line in hypotheses],
            [[self.prepare(line) for line in references]],
        )
        return np.array(counted, dtype=np.float64)

    def prepare(self, line: str) -> str:
        if self.moses is None:
            return line
        if self.lowercase:
            line = line.translate(_ASCII_LOWER)
        if self.compounds:
            line = split_compounds(line)
        return line.translate(_OTHER_SPACES) if self.counter.tokenizer_signature == "none" else line

    def value(self, total: Statistics) -> float:
        return float(self._computed(total).score)

    def text(self, total: Statistics) -> str:
        computed = self._computed(total)
        if self.moses is None:
            return str(computed.format(width=4))
        precisions = "/".join(f"{precision:.1f}" for precision in computed.precisions)
        return (
            f"BLEU = {computed.score:.2f}, {precisions} (BP={computed.bp:.3f}, "
            f"ratio={computed.ratio:.3f}, hyp_len={computed.sys_len}, ref_len={computed.ref_len})"
        )

    def _computed(self, total: Statistics) -> Any:
        return self.counter._compute_score_from_stats(total.tolist())


def split_compounds(line: str) -> str:
    """Split compounds as get_ende_bleu.sh does: well-known -> well ##AT##-##AT## known.

    >>> split_compounds("a-b-c")
    'a ##AT##-##AT## b-c'
    """
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def _multi_bleu(**rules: Any) -> BLEU:
    return BLEU(smooth_method="none", force=True, **rules)


_METRICS = {
    "tokenized": lambda: SacreMetric(
        "BLEU, tokenized", _multi_bleu(tokenize="none"), moses="multi-bleu.perl"
    ),
    "tokenized-lc": lambda: SacreMetric(
        "BLEU, tokenized, lowercased",
        _multi_bleu(tokenize="none"),
        moses="multi-bleu.perl -lc",
        lowercase=True,
    ),
    "compound": lambda: SacreMetric(
        "BLEU, compounds split",
        _multi_bleu(tokenize="none"),
        moses="multi-bleu.perl after ##AT##-##AT##",
        compounds=True,
    ),
    "detok": lambda: SacreMetric(
        "BLEU, raw text (Moses)", _multi_bleu(tokenize="13a"), moses="multi-bleu-detok.perl"
    ),
    "sacrebleu": lambda: SacreMetric("sacreBLEU", BLEU(force=True)),
    "sacrebleu-lc": lambda: SacreMetric("sacreBLEU, lowercased", BLEU(force=True, lowercase=True)),
    "sacrebleu-intl": lambda: SacreMetric(
        "sacreBLEU, international", BLEU(force=True, tokenize="intl")
    ),
    "chrf": lambda: SacreMetric("chrF2", CHRF()),
    "chrf-lc": lambda: SacreMetric("chrF2, lowercased", CHRF(lowercase=True)),
}
BLEU_PROTOCOLS = tuple(_METRICS)
# the protocols whose text must be tokenized already
TOKENIZED_PROTOCOLS = ("tokenized", "tokenized-lc", "compound")


@cache
def bleu_metric(protocol: str) -> SacreMetric:
    if protocol not in _METRICS:
        hint = did_you_mean(protocol, _METRICS)
        raise ValueError(f"no protocol is called {protocol!r}: {hint}")
    return _METRICS[protocol]()


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], protocol: str = "sacrebleu"
) -> Score:
    """Return the score of outputs by one of the protocols.

    >>> corpus_bleu(["the cat sat down"], ["the cat sat down"], "tokenized").text
    'BLEU = 100.00, 100.0/100.0/100.0/100.0 (BP=1.000, ratio=1.000, hyp_len=4, ref_len=4)'
    """
    return score(bleu_metric(protocol), hypotheses, references)
