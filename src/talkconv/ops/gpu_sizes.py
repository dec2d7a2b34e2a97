"""The sizes into which the Triton kernels divide their work."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sizes:
    """The sizes into which kernels divide their work, for a dtype and the channels of a head.

    A sequence must give the same bits wherever it stands, so nothing here depends on the batch or
    on the length. Nothing is tuned at run time.
    """

    chunk: int  # tokens whose sums run in one program
    step: int  # tokens that this program loads at a time
    slab: int  # channels of this program
    block: int  # tokens whose windows are read by one program
    channels: int  # channels of one slice: 64 bytes of a row, if the head has as many
    slices: int  # slices that a thread goes through
    repair_block: int  # tokens that are summed again if one of their windows has a wild element
    tile: int  # tokens that are loaded at a time where windows are summed directly
    event_chunk: int  # sorted events that have one sum
    event_chunks: int  # such sums of one program
    event_channels: int  # channels of a program that reads events
    event_block: int  # tokens whose events are walked through by one program
    dense_block: int  # tokens of a program that multiplies with weights
    dense_tile: int  # tokens of one product
    dense_channels: int  # channels of one product

    @property
    def span(self) -> int:
        """Return the channels of a program that reads windows."""
        return self.channels * self.slices


def sizes_of(dtype: torch.dtype, head_channels: int) -> Sizes:
    rounded = 2 ** (head_channels - 1).bit_length()
    channels = min(rounded, 64 // min(dtype.itemsize, 4))
    return Sizes(
        chunk=128,
        step=16,
        slab=256,
        block=min(512 // channels * (4 // min(dtype.itemsize, 4)), 128),
        channels=channels,
        slices=min(64 // channels, rounded // channels),
        repair_block=128,
        tile=32,
        event_chunk=32,
        event_chunks=8,
        event_channels=min(rounded, 64),
        event_block=64,
        dense_block=64,
        # a larger product of float32 would take all registers of a thread
        dense_tile=16 if dtype == torch.float32 else 32,
        # tensor cores multiply no fewer channels at a time; more would spill registers
        dense_channels=min(max(rounded, 16), 64),
    )
