"""Calls like an earlier one: checked then, and packed for the kernel but for their addresses.

A network calls with the same shapes layer after layer and step after step. At 10 tokens, checking
and packing a call anew takes half as long as its sums.
"""

from collections.abc import Hashable

import torch
from torch import Tensor

from talkconv.ops import cpu, memory
from talkconv.ops.checks import check_inputs

# Beyond this many layouts all are forgotten: batches of ever new lengths must not add up.
_MOST_LAYOUTS = 1024
_known: dict[Hashable, "Layout"] = {}


class Layout:
    """What a call has in common with all that look like it."""

    def __init__(
        self,
        kernel: cpu.Kernel,
        tensors: tuple[Tensor, Tensor, Tensor],
        settings: tuple[int, int, float, bool],
    ) -> None:
        x, left, right = tensors
        self.kernel = kernel
        self.settings = settings  # l_max, r_max, max_offset, normalize
        self._empty_like = torch.empty_like if x.nbytes < memory.LARGE else memory.empty_like
        problem = cpu.problem_of(x, left, *settings)
        # x and all of its size is contiguous, up to the strides of dimensions of size 1
        rows = torch.empty(x.shape, device="meta")
        offset_grads = torch.empty_like(left), torch.empty_like(right)
        self._forward = cpu.packed(problem, rows, left, right, rows)
        self._backward = cpu.packed(problem, rows, rows, left, right, rows, *offset_grads)

    def forward(self, x: Tensor, left: Tensor, right: Tensor) -> Tensor:
        out = self._empty_like(x)
        cpu.call_kernel(
            self.kernel.forward,
            self._forward,
            x.data_ptr(),
            left.data_ptr(),
            right.data_ptr(),
            out.data_ptr(),
        )
        return out

    def backward(
        self, grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of a contiguous grad_out in the dtype of x."""
        grads = self._empty_like(x), torch.empty_like(left), torch.empty_like(right)
        cpu.call_kernel(
            self.kernel.backward,
            self._backward,
            grad_out.data_ptr(),
            x.data_ptr(),
            left.data_ptr(),
            right.data_ptr(),
            grads[0].data_ptr(),
            grads[1].data_ptr(),
            grads[2].data_ptr(),
        )
        return grads


def layout_of(
    x: Tensor,
    left: Tensor,
    right: Tensor | None,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
) -> Layout | None:
    """Of a call on ordinary tensors without lengths; None where the kernel cannot take it as it is.

    Whatever is wrong with the call is raised the first time.
    """
    kernel = cpu.find_kernel()
    # the kernel does not read a side that reaches nowhere
    other = left if right is None else right
    if kernel is None or not (x.is_cpu and left.is_cpu and other.is_cpu):
        return None
    # a bool or a float would be found under the int that it equals
    if type(l_max) is not int or type(r_max) is not int or type(max_offset) is not float:
        return None
    key = (
        *(x.shape, x.is_contiguous(), x.dtype),
        *(left.shape, left.stride(), left.dtype),
        *(other.shape, other.stride(), other.dtype, right is None),
        *(l_max, r_max, max_offset, bool(normalize)),
        torch.get_num_threads(),
    )
    layout = _known.get(key)
    if layout is not None and layout.kernel is kernel:
        return layout
    if not (x.dim() == left.dim() == other.dim() == 3 and x.numel() and x.is_contiguous()):
        return None
    if left.stride(-1) != 1 or other.stride(-1) != 1:
        return None
    check_inputs(x, left, right, l_max=l_max, r_max=r_max, max_offset=max_offset)
    if len(_known) >= _MOST_LAYOUTS:
        _known.clear()
    layout = Layout(kernel, (x, left, other), (l_max, r_max, max_offset, bool(normalize)))
    _known[key] = layout
    return layout
