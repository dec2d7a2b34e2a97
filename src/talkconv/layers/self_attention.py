"""Softmax self-attention, the mixer of the Transformer, with its cache of keys and values."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from talkconv.layers.attend import attend
from talkconv.layers.mixer import Mixer, init_linear, mask_after
from talkconv.network_settings import NetworkSettings

# The smallest number of tokens that a cache has room for.
ROOM = 64


class _Cache:
    """The keys and values of `used` tokens, (2, B, H, capacity, R), and their padding.

    The states of one stream share a cache. Each state knows how many tokens belong to it.
    """

    def __init__(self, pairs: Tensor, padding: Tensor | None, used: int) -> None:
        self.pairs = pairs
        self.padding = padding  # (B, capacity)
        self.used = used

    @property
    def capacity(self) -> int:
        return self.pairs.shape[3]


@dataclass(frozen=True)
class KeyValueState:
    """The keys and values of all `seen` tokens. Unlike the state of a convolution, it grows.

    The states of a stream share a cache, and a step writes after its last token, so that it need
    not copy the past. If two steps start from the same state, the second one copies it.
    """

    cache: _Cache
    seen: int

    @classmethod
    def empty(
        cls,
        batch: int,
        heads: int,
        channels: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> "KeyValueState":
        """Return the state before the first token. `channels` is the number of one head."""
        pairs = torch.empty(2, batch, heads, 0, channels, dtype=dtype, device=device)
        return cls(_Cache(pairs, None, used=0), seen=0)

    @property
    def keys(self) -> Tensor:
        """The keys (B, H, seen, R)."""
        return self.cache.pairs[0, :, :, : self.seen]

    @property
    def values(self) -> Tensor:
        """The values (B, H, seen, R)."""
        return self.cache.pairs[1, :, :, : self.seen]

    @property
    def padding(self) -> Tensor | None:
        """The padding mask (B, seen), True at padding, or None if there has been no padding."""
        return None if self.cache.padding is None else self.cache.padding[:, : self.seen]

    def append(self, pairs: Tensor, padding: Tensor | None) -> "KeyValueState":
        """Return the state after t more tokens: pairs (2, B, H, t, R), padding (B, t)."""
        if pairs.shape[1] != self.cache.pairs.shape[1]:
            raise ValueError(
                f"the state holds {self.cache.pairs.shape[1]} sequences, got {pairs.shape[1]}; "
                "state.repeat(n) opens beams"
            )
        total = self.seen + pairs.shape[3]
        if torch.is_grad_enabled() and (pairs.requires_grad or self.cache.pairs.requires_grad):
            # Autograd has saved the tensor of the past tokens, so it must not be written to.
            cache = self._joined(pairs, padding)
        else:
            fits = self.cache.used == self.seen and total <= self.cache.capacity
            cache = self.cache if fits else self._roomier(total)
            cache.pairs[:, :, :, self.seen : total] = pairs
            if padding is not None and cache.padding is None:
                cache.padding = padding.new_zeros(padding.shape[0], cache.capacity)
            if cache.padding is not None:
                cache.padding[:, self.seen : total] = False if padding is None else padding
        cache.used = total
        return KeyValueState(cache, total)

    def _joined(self, pairs: Tensor, padding: Tensor | None) -> _Cache:
        B, t = pairs.shape[1], pairs.shape[3]
        old = self.padding
        if padding is not None or old is not None:
            no_padding = torch.zeros(B, 1, dtype=torch.bool, device=pairs.device)
            before = no_padding.expand(B, self.seen) if old is None else old
            after = no_padding.expand(B, t) if padding is None else padding
            old = torch.cat((before, after), dim=1)
        past = self.cache.pairs[:, :, :, : self.seen]
        return _Cache(torch.cat((past, pairs), dim=3), old, used=self.seen + t)

    def _roomier(self, total: int) -> _Cache:
        """Return a copy of this state's tokens with room for twice `total` tokens."""
        old = self.cache.pairs
        capacity = max(2 * total, ROOM)
        pairs = old.new_empty(*old.shape[:3], capacity, old.shape[4])
        pairs[:, :, :, : self.seen] = old[:, :, :, : self.seen]
        padding = None
        if self.padding is not None:
            padding = F.pad(self.padding, (0, capacity - self.seen))
        return _Cache(pairs, padding, used=self.seen)

    def reorder(self, index: Tensor) -> "KeyValueState":
        """Return a state in which row k is the former row index[k], to select beams."""
        # A little room for the next steps costs little compared with the tokens to copy.
        rows = min(self.seen + max(self.seen // 8, 8), self.cache.capacity)
        pairs = self.cache.pairs[:, :, :, :rows].index_select(1, index)
        padding = self.cache.padding
        padding = None if padding is None else padding[:, :rows].index_select(0, index)
        return replace(self, cache=_Cache(pairs, padding, used=self.seen))

    def repeat(self, n: int) -> "KeyValueState":
        """Return a state with n adjacent copies of each row, to start n beams."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        pairs = self.cache.pairs
        index = torch.arange(pairs.shape[1], device=pairs.device)
        return self.reorder(index.repeat_interleave(n))

    def crop(self, tokens: int) -> "KeyValueState":
        """Return the state before the last `tokens` tokens."""
        if not 0 <= tokens <= self.seen:
            raise ValueError(f"crop can take back 0 .. {self.seen} tokens here, got {tokens}")
        return replace(self, seen=self.seen - tokens)


class SelfAttention(Mixer):
    """Multi-head softmax attention: x (B, T, dim) -> (B, T, dim), projections included.

    >>> SelfAttention(8, heads=2, causal=True)(torch.randn(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        attention_dropout: float = NetworkSettings.attention_dropout,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        self.attention_dropout = attention_dropout
        # For the three in one layer, Xavier's bound is that of separate layers with gain 1/sqrt(2).
        self.to_qkv = init_linear(nn.Linear(dim, 3 * dim))
        self.to_out = init_linear(nn.Linear(dim, dim))

    def empty_state(
        self,
        batch: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rollback: int = 0,
    ) -> KeyValueState:
        """Return the state before the first token.

        It keeps all tokens, so crop() can remove any number of them, whatever `rollback` is.
        """
        dtype, device = self._default_place(dtype, device)
        channels = self.dim // self.heads
        return KeyValueState.empty(batch, self.heads, channels, dtype=dtype, device=device)

    def _mix(self, x: Tensor, lengths: Tensor | None, padding_mask: Tensor | None) -> Tensor:
        queries, pairs = self._project(x)
        T = x.shape[1]
        if lengths is not None and not self.causal:
            padding_mask = mask_after(lengths, T)
        mask = None if padding_mask is None else ~padding_mask[:, None, None]  # (B, 1, 1, T)
        if mask is not None and self.causal:
            mask = mask & _causal_mask(T, T, x.device)
        is_causal = self.causal and mask is None
        return self._attend(queries, pairs[0], pairs[1], mask, is_causal)

    def _step(
        self, x: Tensor, padding_mask: Tensor | None, state: KeyValueState
    ) -> tuple[Tensor, KeyValueState]:
        queries, pairs = self._project(x)
        state = state.append(pairs, padding_mask)
        t = x.shape[1]
        # One token sees all tokens before it, and the first tokens of a stream are an ordinary
        # causal sequence. Neither needs a mask unless there is padding.
        mask = None
        if 1 < t < state.seen or (t > 1 and state.padding is not None):
            mask = _causal_mask(t, state.seen, x.device)
        if state.padding is not None:
            exists = ~state.padding[:, None, None]  # (B, 1, 1, seen)
            mask = exists if mask is None else exists & mask
        is_causal = mask is None and t > 1
        return self._attend(queries, state.keys, state.values, mask, is_causal), state

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, T, R), and keys and values in one tensor (2, B, H, T, R)."""
        qkv = self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return qkv[0], qkv[1:]

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        out = attend(
            queries,
            keys,
            values,
            mask=mask,
            dropout_p=self.attention_dropout if self.training else 0.0,
            is_causal=is_causal,
        )
        attended: Tensor = self.to_out(out.transpose(1, 2).flatten(2))
        return attended

    def extra_repr(self) -> str:
        return f"{self.dim}, heads={self.heads}, causal={self.causal}"


def _causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return a mask (queries, keys) that is True where a query may look.

    The queries belong to the last tokens of the keys.
    """
    token = torch.arange(keys, device=device)
    return token <= token[keys - queries :, None]
