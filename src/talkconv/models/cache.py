"""The cache of generation, `past_key_values`. Its size does not grow with the generated text.

A TaLK layer keeps only the tokens that its windows can reach. The keys and values of the encoder's
states are kept once for each sentence, not once for each beam.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers import Cache

from talkconv.layers.cross_attention import ProjectedStates


class TaLKConvCache(Cache):
    """Holds the state of each layer's mixer and, for a translation, its projected encoder states.

    The rows of the states are beams, and `reorder_cache` chooses among them. The projected states
    have a row for each sentence. Beams never change their sentence, so these rows never move. A
    new cache has no states; the network makes them at its first call.
    """

    def __init__(
        self, states: list[Any] | None = None, projected: list[ProjectedStates] | None = None
    ) -> None:
        super().__init__(layers=[])
        self.states = [] if states is None else states
        self.projected = projected
        # the number of padding tokens read so far in each row, (B,); None if there were none
        self.padding: Tensor | None = None

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens read so far, padding included."""
        seen: int = self.states[layer_idx].seen if self.states else 0
        return seen

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """Return -1, which means that the length of a sequence is not limited."""
        return -1

    @property
    def tokens(self) -> int | Tensor:
        """The number of tokens read so far without padding: one number, or (B,) if rows differ."""
        seen = self.get_seq_length()
        return seen if self.padding is None else seen - self.padding

    def count_padding(self, padding_mask: Tensor) -> None:
        """Add the padding among the next tokens: padding_mask (B, t), True at padding."""
        count = padding_mask.sum(dim=1)
        self.padding = count if self.padding is None else self.padding + count

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Put the former row beam_idx[k] into row k. Both must belong to the same sentence."""
        self._each(lambda state: state.reorder(beam_idx))
        self.padding = None if self.padding is None else self.padding.index_select(0, beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Make `repeats` adjacent copies of each row, to start beams."""
        self._each(lambda state: state.repeat(repeats))
        self.padding = None if self.padding is None else self.padding.repeat_interleave(repeats)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows of the states and of the sentences. Each sentence must have one row."""
        self.reorder_cache(indices)
        if self.projected is not None:
            self.projected = [each.reorder(indices) for each in self.projected]

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens. transformers passes their number as a negative one."""
        self._each(lambda state: state.crop(abs(tokens_to_remove)))

    def _each(self, change: Callable[[Any], Any]) -> None:
        self.states = [change(state) for state in self.states]

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        return f"TaLKConvCache({len(self)} layers, {self.get_seq_length()} tokens seen)"

    @property
    def is_compileable(self) -> bool:
        return False
