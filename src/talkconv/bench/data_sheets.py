"""The data sheets of GPUs: memory, and the peak of half-precision operations per second."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """One GPU and the publication that its numbers are from."""

    name: str
    memory: int  # bytes
    flops: float  # a second, half precision with float32 sums, without sparsity
    source: str


GPUS = (
    Sheet("RTX 2080 Ti", 11 << 30, 53.8e12, "NVIDIA Turing architecture whitepaper"),
    Sheet("RTX 4090", 24 << 30, 165.2e12, "NVIDIA Ada architecture whitepaper"),
    Sheet("A100 80 GB", 80 << 30, 312e12, "NVIDIA A100 data sheet"),
    Sheet("H100 SXM", 80 << 30, 989e12, "NVIDIA H100 data sheet"),
    Sheet("MI300X", 192 << 30, 1307e12, "AMD Instinct MI300X data sheet"),
)
