"""The data sheets of GPUs: memory, bandwidth and the peak of half-precision operations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """One GPU and the publication that its numbers are from."""

    name: str
    memory: int  # bytes
    bandwidth: float  # bytes a second
    flops: float  # a second, half precision with float32 sums, without sparsity
    source: str


RTX_2080_TI = Sheet(
    "RTX 2080 Ti", 11 << 30, 616e9, 53.8e12, "NVIDIA Turing architecture whitepaper"
)
RTX_4090 = Sheet("RTX 4090", 24 << 30, 1008e9, 165.2e12, "NVIDIA Ada architecture whitepaper")
A100 = Sheet("A100 80 GB", 80 << 30, 2.04e12, 312e12, "NVIDIA A100 data sheet")
H100 = Sheet("H100 SXM", 80 << 30, 3.35e12, 989e12, "NVIDIA H100 data sheet")
B200 = Sheet("B200", 180 << 30, 8.0e12, 2250e12, "NVIDIA HGX B200 data sheet")
MI300X = Sheet("MI300X", 192 << 30, 5.3e12, 1307e12, "AMD Instinct MI300X data sheet")

# the ones that `talkconv plan` tells about
GPUS = (RTX_2080_TI, RTX_4090, A100, H100, MI300X)
