"""The paper's own numbers: its tables of throughput and memory, and of layer types.

Lioutas & Guo, "Time-aware Large Kernel Convolutions", ICML 2020: one NVIDIA RTX 2080 Ti, float32,
batch 10, d = 1024, 16 heads, forward.
"""

HARDWARE = "one NVIDIA RTX 2080 Ti, float32"
LENGTHS = (10, 100, 1000, 10_000)
# Iterations per second by length. None means that memory was full.
ITERATIONS: dict[str, tuple[float | None, ...]] = {
    "self-attention": (4576, 3437, 102, None),
    "DynamicConv k=3": (3739, 3308, 443, 45),
    "DynamicConv k=31": (4535, 3860, 325, 29),
    "TaLK": (9686, 6126, 898, 92),
}
# How many times less memory than self-attention.
MEMORY: dict[str, tuple[float, ...]] = {
    "DynamicConv k=3": (1.0, 0.99, 2.8, 25.4),
    "DynamicConv k=31": (0.97, 1.0, 2.7, 20.2),
    "TaLK": (1.1, 1.1, 3.1, 26.4),
}
# The paper uses the band matrix up to this many tokens, and unfolds longer inputs.
BAND_UP_TO = 500
