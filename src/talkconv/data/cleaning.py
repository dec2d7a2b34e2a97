"""Decides which training pairs are dropped, and why, as Moses' clean-corpus-n does."""

from collections.abc import Sequence

from talkconv.data.data_settings import DataSettings

EMPTY = "a side is empty"
LONG_WORD = "a word of more than 1000 characters"
_LONGEST_WORD = 1_000


def why_dropped_raw(pair: Sequence[str]) -> str | None:
    """Return the reason to drop a raw pair, before it is tokenized, or None."""
    for side in pair:
        if not side or side.isspace():
            return EMPTY
        if len(side) > _LONGEST_WORD and max(map(len, side.split())) > _LONGEST_WORD:
            return LONG_WORD
    return None


def why_dropped(lengths: Sequence[int], settings: DataSettings) -> str | None:
    """Return the reason to drop a pair of these lengths (in settings.length_in), or None.

    >>> why_dropped([3, 9], DataSettings(corpus="pairs", max_ratio=2.5))
    'one side more than 2.5 times the other'
    """
    source, target = lengths
    if not source or not target:
        return EMPTY
    longest, ratio = settings.max_length, settings.max_ratio
    if longest is not None:
        # A side that is cut is never too long.
        source_fits = source <= longest or settings.max_source_tokens is not None
        target_fits = target <= longest or settings.max_target_tokens is not None
        if not (source_fits and target_fits):
            return f"a side of more than {longest} {settings.length_in}"
    if ratio is not None and (source > ratio * target or target > ratio * source):
        return f"one side more than {ratio} times the other"
    return None
