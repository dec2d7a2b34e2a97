"""The steps of a plan for the GPU: launches of Triton kernels, and sorts by torch."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Launch:
    """One kernel, how many programs of it, and all its arguments by name."""

    kernel: Any
    programs: int
    arguments: dict[str, Any]
    warps: int = 4
    stages: int = 1
    most_registers: int | None = None  # of a thread, on GPUs of NVIDIA; None leaves it to ptxas
    options: dict[str, int | bool] = field(init=False)

    def __post_init__(self) -> None:
        # A product and a sum stay two roundings where the kernels do not ask for one: the variants
        # of a kernel, with lengths or packed, would otherwise differ in the last bit.
        options: dict[str, int | bool]
        options = dict(num_warps=self.warps, num_stages=self.stages, enable_fp_fusion=False)
        if self.most_registers is not None and torch.version.hip is None:
            options["maxnreg"] = self.most_registers
        object.__setattr__(self, "options", options)

    def run(self) -> None:
        """Launch the kernel on the current device and stream."""
        if self.programs:
            self.kernel[(self.programs,)](**self.arguments, **self.options)


@dataclass(frozen=True)
class Sort:
    """Sorts keys along their last dimension; equal keys keep their order."""

    keys: Tensor
    sorted: Tensor
    order: Tensor

    @classmethod
    def of(cls, keys: Tensor) -> "Sort":
        return cls(keys, torch.empty_like(keys), keys.new_empty(keys.shape, dtype=torch.int64))

    def run(self) -> None:
        torch.sort(self.keys, dim=-1, stable=True, out=(self.sorted, self.order))
