"""Position: a place in the stream of batches. It needs neither torch nor datasets."""

from typing import NamedTuple


class Position(NamedTuple):
    """The epoch, and the batch of that epoch, that comes next for all processes."""

    epoch: int = 0
    batch: int = 0


START = Position()
