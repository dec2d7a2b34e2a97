"""How a model writes: the `[generation]` section of a recipe."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from talkconv.search.limits import longest_output


@dataclass(frozen=True)
class GenerationSettings:
    """Beam search, or sampling where `temperature` is above 0. Lengths count new tokens.

    With y of t tokens, its end included, the search looks for the largest

        (log P(y) - stepwise_length_penalty * t) / t ** length_penalty

    The paper applies "a stepwise length penalty" to summaries and gives no formula: here it is what
    each expansion of a beam costs. Under length_penalty = 1 it shifts all scores alike and so
    changes nothing.

    >>> GenerationSettings(num_beams=4, length_penalty=0.6).num_beams
    4
    """

    num_beams: int = 5
    # above 0 the score is a mean, which favours longer outputs the larger it is; 0 is the plain sum
    length_penalty: float = 1.0
    # what each token costs as it is written; below 0 it is a reward, and outputs become longer
    stepwise_length_penalty: float = 0.0
    # no sequence of this many tokens is written twice; 0: any may be
    no_repeat_ngram: int = 0
    # the end not counted
    min_length: int = 0
    # an output has at most max_ratio * (tokens of its source) + max_extra tokens, and max_length,
    # its end counted
    max_length: int = 256
    max_ratio: float = 2.0
    max_extra: int = 20
    # the rest of a longer source is cut off, and said so
    max_source_tokens: int = 1024
    # sampling, for language models: 0 is beam search
    temperature: float = 0.0
    # of the likeliest tokens, those that make up this probability, and at most this many (0: all)
    top_p: float = 1.0
    top_k: int = 0
    # tokens of source, padding included, that are read together; beams come on top
    batch_tokens: int = 2048
    # how many lines are read ahead, so that lines of one length can be put together
    read_ahead: int = 1024

    def reading_at_most(self, tokens: int | None) -> "GenerationSettings":
        """With sources cut at `tokens` too, as those of a training were; None: no such limit."""
        if tokens is None:
            return self
        return replace(self, max_source_tokens=min(tokens, self.max_source_tokens))

    def __post_init__(self) -> None:
        for name in ("num_beams", "max_length", "max_source_tokens", "batch_tokens", "read_ahead"):
            _require(name, getattr(self, name), "at least 1", getattr(self, name) >= 1)
        for name in (
            "no_repeat_ngram",
            "min_length",
            "max_ratio",
            "max_extra",
            "temperature",
            "top_k",
        ):
            _require(name, getattr(self, name), "at least 0", getattr(self, name) >= 0)
        _require("top_p", self.top_p, "above 0 and at most 1", 0 < self.top_p <= 1)
        _require(
            "min_length",
            self.min_length,
            f"at most max_length={self.max_length}",
            self.min_length <= self.max_length,
        )
        if self.max_ratio == 0 and self.max_extra == 0:
            raise ValueError("max_ratio and max_extra must not both be 0: nothing could be written")

    def longest(self, source_tokens: int) -> int:
        """Return the most tokens that an output may have for a source of so many tokens."""
        return longest_output(
            source_tokens,
            max_length=self.max_length,
            min_length=self.min_length,
            max_ratio=self.max_ratio,
            max_extra=self.max_extra,
        )

    def changed(self, changes: Mapping[str, Any]) -> "GenerationSettings":
        """With other values where `changes` has any, None being none."""
        given = {name: value for name, value in changes.items() if value is not None}
        return GenerationSettings.of({**asdict(self), **given})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "GenerationSettings":
        """From a mapping, as a recipe or a run's card has it; names must be known."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(
                f"no setting of generation is called {unknown[0]!r}: there are {sorted(known)}"
            )
        return cls(**values)


def _require(name: str, value: float, what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name} must be {what}, got {value}")
