"""The number of threads that torch uses."""

import torch


def use_threads(count: int | None) -> None:
    """Let torch use this many threads; None changes nothing.

    torch is told only if the number differs. Telling it also lets MKL start threads within
    threads, which makes fused attention of 10 tokens take twice as long.
    """
    if count is not None and count != torch.get_num_threads():
        torch.set_num_threads(count)
