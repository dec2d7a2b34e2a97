"""Calls like an earlier one: checked then, and packed for the kernel but for their addresses.

A network calls with the same shapes layer after layer and step after step. At 10 tokens, checking
and packing a call anew takes half as long as its sums.
"""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor
from torch.autograd import forward_ad

from talkconv.ops import cpu, memory
from talkconv.ops.checks import check_inputs
from talkconv.ops.direct import only_autograd_listens
from talkconv.ops.guards import guard

# Beyond this many all are forgotten: batches of ever new lengths must not add up.
_MOST_SHAPES, _MOST_OF_A_SHAPE = 1024, 16
_known: dict[Hashable, list["Layout"]] = {}


class Layout:
    """What a call has in common with all that look like it."""

    def __init__(
        self,
        fits: Callable[..., bool],
        kernel: cpu.Kernel,
        tensors: tuple[Tensor, Tensor, Tensor],
        settings: tuple[int, int, float, bool],
    ) -> None:
        x, left, right = tensors
        self.fits = fits  # the tensors that were passed
        self.kernel = kernel
        self.settings = settings  # l_max, r_max, max_offset, normalize
        self.requires_grad = any(tensor.requires_grad for tensor in tensors)
        self._dtype = x.dtype
        self._gradient_fits: Callable[..., bool] | None = None
        self._empty_like = torch.empty_like if x.nbytes < memory.LARGE else memory.empty_like
        problem = cpu.problem_of(x, left, *settings)
        # x and all of its size is contiguous, up to the strides of dimensions of size 1
        rows = torch.empty(x.shape, device="meta")
        offset_grads = torch.empty_like(left), torch.empty_like(right)
        self._forward = cpu.packed(problem, rows, left, right, rows)
        self._backward = cpu.packed(problem, rows, rows, left, right, rows, *offset_grads)

    def forward(self, x: Tensor, left: Tensor, right: Tensor | None) -> Tensor:
        right = left if right is None else right
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

    def rows_of(self, grad_out: Tensor) -> Tensor | None:
        """As backward() takes them; None where somebody but autograd listens."""
        fits = self._gradient_fits
        if fits is not None and fits(grad_out) and forward_ad._current_level < 0:
            return grad_out
        if not only_autograd_listens(grad_out):
            return None
        rows = grad_out.to(self._dtype).contiguous()
        if rows is grad_out:
            self._gradient_fits = guard(grad_out)
        return rows

    def backward(
        self, grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of what rows_of() gave."""
        right = left if right is None else right
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
    """Of a call without lengths where nobody but autograd listens; None where the kernel cannot
    take it as it is.

    Whatever is wrong with the call is raised the first time.
    """
    # what the layouts' guards do not see
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0:
        return None
    if type(x) is not Tensor or type(left) is not Tensor:
        return None
    # a bool or a float would be found under the int that it equals
    if type(l_max) is not int or type(r_max) is not int or type(max_offset) is not float:
        return None
    kernel = cpu.find_kernel()
    settings = (l_max, r_max, max_offset, bool(normalize))
    key = (x.shape, settings, right is None, right is left, torch.get_num_threads())
    # guards take no tensor twice
    tensors = (x, left) if right is None or right is left else (x, left, right)
    for layout in _known.get(key, ()):
        if layout.fits(*tensors) and layout.kernel is kernel:
            return layout
    # the kernel does not read a side that reaches nowhere
    other = left if right is None else right
    if kernel is None or not _can_take(x, left, other):
        return None
    check_inputs(x, left, right, l_max=l_max, r_max=r_max, max_offset=max_offset)
    fits = guard(*tensors)
    if fits is None:
        return None
    layout = Layout(fits, kernel, (x, left, other), settings)
    _remember(key, layout)
    return layout


def _can_take(x: Tensor, left: Tensor, right: Tensor) -> bool:
    """The kernel, as they lie in memory."""
    tensors = (x, left, right)
    return (
        only_autograd_listens(*tensors)
        and all(tensor.is_cpu and tensor.dim() == 3 for tensor in tensors)
        and x.numel() > 0
        and x.is_contiguous()
        and left.stride(-1) == right.stride(-1) == 1
    )


def _remember(key: Hashable, layout: Layout) -> None:
    if len(_known) >= _MOST_SHAPES:
        _known.clear()
    layouts = _known.setdefault(key, [])
    if len(layouts) >= _MOST_OF_A_SHAPE:
        layouts.clear()
    layouts.append(layout)
