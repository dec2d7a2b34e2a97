"""Dropout: torch's layer with our operation inside, which stores no mask."""

from torch import Tensor, nn

from talkconv.ops.dropout import dropout


class Dropout(nn.Dropout):
    """Behaves like torch.nn.Dropout. On a CPU it takes less time, and no memory for a mask.

    >>> Dropout(0.1).eval()(Tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training)
