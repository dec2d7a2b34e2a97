"""Products of matrices as tensor cores compute them."""

import numpy as np

# Tensor cores add this many products exactly, then round: 8 on an A100, 16 on an H100. The smaller
# number rounds more often.
PRODUCTS_PER_ROUNDING = 8


def multiply(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return total + a @ b in float32, (..., M, N) + (..., M, K) @ (..., K, N)."""
    for start in range(0, a.shape[-1], PRODUCTS_PER_ROUNDING):
        chosen = slice(start, start + PRODUCTS_PER_ROUNDING)
        products = a[..., :, chosen].astype(np.float64) @ b[..., chosen, :].astype(np.float64)
        total = toward_zero(total.astype(np.float64) + products)
    return total


def toward_zero(values: np.ndarray) -> np.ndarray:
    """Round float64 to float32, always to the neighbour that is nearer to zero."""
    rounded = values.astype(np.float32)
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(rounded, np.float32(0)), rounded)
