"""The settings of generation: the `[generation]` section of a recipe."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from talkconv.search.limits import longest_output


@dataclass(frozen=True)
class GenerationSettings:
    """The settings of beam search, or of sampling if `temperature` is above 0.

    Lengths count new tokens only. Among outputs y of t tokens, the end included, beam search looks
    for the largest

        (log P(y) - stepwise_length_penalty * t) / t ** length_penalty

    The paper applies "a stepwise length penalty" to summaries and gives no formula. Here it is
    subtracted from the score at each step of a beam. If length_penalty = 1, it changes all scores
    by the same amount and so has no effect.

    The comment above each setting is its explanation in docs/settings.md and recipes/toy.toml,
    which `make settings` writes.

    >>> GenerationSettings(num_beams=4, length_penalty=0.6).num_beams
    4
    """

    # The width of the search: so many candidates are kept at each token.
    num_beams: int = 5
    # The score of an output is divided by its number of tokens to this power. A larger value
    # favours longer outputs; 0 is the plain sum.
    length_penalty: float = 1.0
    # This is subtracted from the score for each token. Below 0 it is a reward, and outputs become
    # longer.
    stepwise_length_penalty: float = 0.0
    # No sequence of so many tokens is written twice. With 0, any may be.
    no_repeat_ngram: int = 0
    # An output has at least so many tokens, its end not counted.
    min_length: int = 0
    # An output has at most so many tokens, its end counted.
    max_length: int = 256
    # An output also has at most this times the tokens of its source, plus max_extra.
    max_ratio: float = 2.0
    # The tokens that an output may have beyond max_ratio times those of its source.
    max_extra: int = 20
    # The rest of a longer source is cut off, with a message.
    max_source_tokens: int = 1024
    # Above 0, tokens are sampled with this temperature, for language models. 0 is beam search.
    temperature: float = 0.0
    # Tokens are sampled from the likeliest ones that have this probability together.
    top_p: float = 1.0
    # Tokens are sampled from at most so many of the likeliest ones. With 0, from all.
    top_k: int = 0
    # The source tokens of one batch, padding included. Beams come on top.
    batch_tokens: int = 2048
    # The number of lines that are read ahead, so that lines of similar length share a batch.
    read_ahead: int = 1024

    def reading_at_most(self, tokens: int | None) -> "GenerationSettings":
        """Return settings that cut sources at `tokens` too, unless it is None.

        A training may have cut its sources at this length.
        """
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
            raise ValueError("max_ratio and max_extra must not both be 0: outputs would be empty")

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
        """Return settings with the values of `changes`. A value of None changes nothing."""
        given = {name: value for name, value in changes.items() if value is not None}
        return GenerationSettings.of({**asdict(self), **given})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "GenerationSettings":
        """Make settings from a mapping in a recipe or a run's card. Its names must be known."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(
                f"no setting of generation is called {unknown[0]!r}: the settings are "
                f"{sorted(known)}"
            )
        return cls(**values)


def _require(name: str, value: float, what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name} must be {what}, got {value}")
