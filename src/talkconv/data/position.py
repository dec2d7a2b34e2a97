"""Position: a position in the stream of batches. It needs neither torch nor datasets."""

from typing import NamedTuple


class Position(NamedTuple):
    """The epoch and the number of the next batch in it, for all processes together."""

    epoch: int = 0
    batch: int = 0


START = Position()
