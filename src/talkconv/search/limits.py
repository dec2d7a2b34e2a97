"""The limit of an output's length."""


def longest_output(
    source_tokens: int, *, max_length: int, min_length: int, max_ratio: float, max_extra: int
) -> int:
    """Return the most tokens that an output may have for a source of so many tokens.

    >>> longest_output(10, max_length=256, min_length=0, max_ratio=2.0, max_extra=20)
    40
    """
    allowed = int(max_ratio * source_tokens) + max_extra
    return max(1, min_length, min(max_length, allowed))
