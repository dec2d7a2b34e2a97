"""Where sequences that are ordered by length are cut into batches. It needs numpy, and no torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def batch_bounds(lengths: Sequence[int] | NDArray[Any], tokens: int) -> NDArray[np.int64]:
    """Return where batches begin, and the end: a batch has at most `tokens`, padding included.

    A sequence that is longer than `tokens` is a batch of its own.

    >>> batch_bounds([9, 4, 4, 2], tokens=8).tolist()
    [0, 1, 3, 4]
    """
    ordered = np.asarray(lengths, dtype=np.int64)
    bounds = [0]
    while bounds[-1] < len(ordered):
        begin = bounds[-1]
        # A batch cannot have more rows than if all of them were as long as the first.
        ahead = ordered[begin : begin + max(1, tokens // max(1, int(ordered[begin])))]
        padded = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        bounds.append(begin + max(1, int(np.searchsorted(padded, tokens, side="right"))))
    return np.array(bounds)
