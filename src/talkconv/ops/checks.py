"""Checks the arguments of a call. A message says what must hold, what was passed and the cure."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

# A window of more tokens than this is a mistake in a setting.
MOST_TOKENS = 2**31 - 1


def check_inputs(
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    *,
    l_max: int,
    r_max: int,
    max_offset: float,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> None:
    """Check shapes, dtypes and devices; check_values() checks the values of lengths."""
    check_reach("l_max", l_max)
    check_reach("r_max", r_max)
    check_max_offset(max_offset)
    _check_tensor("x", x)
    if cu_seqlens is not None:
        if lengths is not None:
            raise ValueError(
                "lengths (padded batch) and cu_seqlens (packed) exclude each other, got both"
            )
        if x.dim() != 2:
            raise ValueError(
                f"with cu_seqlens x must be packed (N, C), got {tuple(x.shape)}; "
                "without cu_seqlens it is (B, T, C)"
            )
        _check_integers("cu_seqlens", cu_seqlens, x, "(S + 1,) for S sequences")
        if cu_seqlens.shape[0] < 1:
            raise ValueError("cu_seqlens must hold at least its leading 0, got an empty tensor")
    elif x.dim() != 3:
        raise ValueError(
            f"x must be (B, T, C), got {tuple(x.shape)}; add a batch dimension with x[None], "
            "or pass cu_seqlens for packed sequences"
        )
    _check_offsets("left", left, x, "l_max", l_max)
    _check_offsets("right", right, x, "r_max", r_max)
    if left is None and right is None:
        raise ValueError("left and right are both None: pass at least one, it gives the heads")
    if left is not None and right is not None:
        if left.shape != right.shape:
            raise ValueError(
                f"left and right must have the same shape, got {tuple(left.shape)} "
                f"and {tuple(right.shape)}"
            )
        if left.dtype != right.dtype:
            raise TypeError(
                f"left and right must have the same dtype, got {left.dtype} and {right.dtype}"
            )
    if lengths is not None:
        _check_integers("lengths", lengths, x, "(B,)")
        if lengths.shape[0] != x.shape[0]:
            raise ValueError(
                f"lengths must be (B,) with B = {x.shape[0]}, got {tuple(lengths.shape)}"
            )


def check_values(x: Tensor, lengths: Tensor | None, cu_seqlens: Tensor | None) -> None:
    """Check the values of lengths and cu_seqlens. It reads them, so it cannot run while tracing."""
    if lengths is not None and lengths.numel():
        T = x.shape[1]
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or high > T:
            raise ValueError(f"lengths must lie in 0 .. T = {T}, got {low} .. {high}")
    if cu_seqlens is not None:
        N = x.shape[0]
        values = cu_seqlens.tolist()
        if values[0] != 0 or values[-1] != N:
            raise ValueError(
                f"cu_seqlens must run from 0 to N = {N} (the rows of x), "
                f"got {values[0]} .. {values[-1]}"
            )
        for s, (begin, end) in enumerate(itertools.pairwise(values)):
            if end < begin:
                raise ValueError(
                    f"cu_seqlens must not fall, got {begin} then {end} at position {s + 1}"
                )


def check_reach(name: str, value: Any) -> None:
    # under torch.compile an int may be a SymInt
    if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
        raise TypeError(f"{name} must be an int (tokens), got {value!r}")
    if not 0 <= value <= MOST_TOKENS:
        raise ValueError(f"{name} must lie in 0 .. {MOST_TOKENS} tokens, got {value}")


def check_max_offset(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, torch.SymFloat, torch.SymInt)):
        raise TypeError(f"max_offset must be a float, got {value!r}")
    if not 0 <= value < math.inf:
        raise ValueError(f"max_offset must be finite and at least 0, got {value}")


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.dtype not in DTYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
        raise TypeError(f"{name} must be one of {names}, got {value.dtype}; convert it first")


def _check_offsets(
    name: str, offsets: Tensor | None, x: Tensor, reach_name: str, reach: int
) -> None:
    if offsets is None:
        if reach != 0:
            raise ValueError(
                f"{name} may be None only with {reach_name}=0, got {reach_name}={reach}"
            )
        return
    _check_tensor(name, offsets)
    leading, C = x.shape[:-1], x.shape[-1]
    if offsets.dim() != x.dim() or offsets.shape[:-1] != leading:
        wanted = "(B, T, H) with B, T" if x.dim() == 3 else "(N, H) with N"
        raise ValueError(f"{name} must be {wanted} = {tuple(leading)}, got {tuple(offsets.shape)}")
    H = offsets.shape[-1]
    if H == 0 or C % H != 0:
        raise ValueError(
            f"the heads of {name} must divide the channels of x, got H = {H} and C = {C}"
        )
    if offsets.device != x.device:
        raise ValueError(
            f"{name} must be on the device of x, {x.device}, got {offsets.device}; "
            f"move it with {name}.to(x.device)"
        )


def _check_integers(name: str, value: Any, x: Tensor, shape: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be an integer tensor {shape}, got {type(value).__name__}")
    if value.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name} must be int32 or int64, got {value.dtype}")
    if value.dim() != 1:
        raise ValueError(f"{name} must be {shape}, got {tuple(value.shape)}")
    if value.device != x.device:
        raise ValueError(
            f"{name} must be on the device of x, {x.device}, got {value.device}; "
            f"move it with {name}.to(x.device)"
        )
