"""Keeps NaN and infinities within the windows that hold them, in plain PyTorch operations.

The eager path reads windows from running sums, which would carry them on to the end of a block. The
compiled kernel has its own way (csrc/repair.h).
"""

import math
from collections.abc import Callable

from torch import Tensor


def confined(weighted_sums: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """weighted_sums(values), each over the values that its weights, none below 0, reach."""
    finite = values.isfinite()
    if finite.all():
        return weighted_sums(values)

    def reached(kind: Tensor) -> Tensor:
        # in float64 no weight is too small to be seen
        return weighted_sums(kind.double()) > 0

    out = weighted_sums(values.where(finite, 0))
    above, below = reached(values == math.inf), reached(values == -math.inf)
    nan = reached(values.isnan()) | (above & below)
    return out.where(~above, math.inf).where(~below, -math.inf).where(~nan, math.nan)
