"""Cuts sequences that are ordered by length into batches. It needs numpy, but not torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def batch_bounds(lengths: Sequence[int] | NDArray[Any], tokens: int) -> NDArray[np.int64]:
    """Return the index at which each batch begins, and the end of the last one.

    A batch has at most `tokens` tokens, padding included. A longer sequence is a batch of its own.

    >>> batch_bounds([9, 4, 4, 2], tokens=8).tolist()
    [0, 1, 3, 4]
    """
    ordered = np.asarray(lengths, dtype=np.int64)
    bounds = [0]
    while bounds[-1] < len(ordered):
        begin = bounds[-1]
        # No batch has more rows than one in which all rows are as long as the first.
        ahead = ordered[begin : begin + max(1, tokens // max(1, int(ordered[begin])))]
        padded = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        bounds.append(begin + max(1, int(np.searchsorted(padded, tokens, side="right"))))
    return np.array(bounds)
