"""Batches of sentences of about the same length, under a budget of tokens.

The order of batches depends only on the seed and the number of the epoch. A position in the stream
is therefore two numbers, and any number of processes can read the stream at the same time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from torch import Tensor

from talkconv.conventions import IGNORED_LABEL
from talkconv.data.length_batches import batch_bounds
from talkconv.data.position import START, Position
from talkconv.data.specials import EOS, PAD, SPECIALS

PAD_ID, EOS_ID = SPECIALS.index(PAD), SPECIALS.index(EOS)
Rows = NDArray[np.int64]


class Column:
    """A column of token ids that is mapped from disk and not copied; rows have any length."""

    def __init__(self, dataset: Dataset, name: str) -> None:
        table = dataset.with_format("arrow")[:]
        chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
        self._values = [chunk.values.to_numpy() for chunk in chunks]
        self._bounds = [chunk.offsets.to_numpy() for chunk in chunks]
        self._first = np.cumsum([0, *(len(chunk) for chunk in chunks)])
        lengths = [np.diff(bounds) for bounds in self._bounds]
        self.lengths = np.concatenate([np.empty(0, np.int32), *lengths])

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        chunk = int(np.searchsorted(self._first, row, side="right")) - 1
        begin, end = self._bounds[chunk][row - self._first[chunk] :][:2]
        ids: NDArray[np.int32] = self._values[chunk][begin:end]
        return ids

    def padded(self, rows: Rows, fill: int) -> NDArray[np.int64]:
        """Return the rows as (B, T), with `fill` after the end of each row."""
        out = np.full((len(rows), int(self.lengths[rows].max())), fill)
        for place, row in zip(out, rows.tolist(), strict=True):
            ids = self[row]
            place[: len(ids)] = ids
        return out


class Examples(Protocol):
    """Examples from which batches are made: the lengths of each side, and rows as tensors."""

    @property
    def lengths(self) -> Sequence[NDArray[np.int32]]: ...

    def collate(self, rows: Rows) -> dict[str, Tensor]: ...


class Pairs:
    """Examples that are sources and their targets."""

    def __init__(self, dataset: Dataset) -> None:
        self._source, self._target = Column(dataset, "source"), Column(dataset, "target")
        self.lengths = [self._source.lengths, self._target.lengths]

    def collate(self, rows: Rows) -> dict[str, Tensor]:
        """Return input_ids (B, S) and labels (B, T)."""
        return {
            "input_ids": torch.from_numpy(self._source.padded(rows, PAD_ID)),
            "labels": torch.from_numpy(self._target.padded(rows, IGNORED_LABEL)),
        }


class Blocks:
    """Examples that are blocks of the token stream of a language model."""

    def __init__(self, dataset: Dataset) -> None:
        self._tokens = Column(dataset, "tokens")
        self.lengths = [self._tokens.lengths]

    def collate(self, rows: Rows) -> dict[str, Tensor]:
        """Return input_ids and labels (B, 1 + T).

        The first token of a row is the last one before its block, from which the network predicts
        the first token of the block. Padding comes last and is not predicted.
        """
        before = [self._tokens[row - 1][-1] if row else EOS_ID for row in rows.tolist()]
        blocks = self._tokens.padded(rows, IGNORED_LABEL)
        labels = torch.from_numpy(np.column_stack([np.array(before, np.int64), blocks]))
        return {"input_ids": labels.masked_fill(labels == IGNORED_LABEL, PAD_ID), "labels": labels}


def examples_of(dataset: Dataset) -> Pairs | Blocks:
    """Return the examples of a prepared split, whose columns say which kind they are."""
    return Blocks(dataset) if "tokens" in dataset.column_names else Pairs(dataset)


@dataclass(frozen=True)
class Plan:
    """The batches of one epoch: each is a slice of `rows`, and `turns` is their order."""

    rows: Rows
    bounds: Rows
    turns: Rows

    def __len__(self) -> int:
        return len(self.turns)

    def __getitem__(self, batch: int) -> Rows:
        turn = self.turns[batch]
        return self.rows[self.bounds[turn] : self.bounds[turn + 1]]


class Batches:
    """The plans of all epochs, and the streams of batches that processes read.

    A batch has at most `tokens` tokens on its longer side, padding included.

    >>> batches = Batches(Pairs(prepared.split("train")), tokens=4000)  # doctest: +SKIP
    >>> next(batches.stream())["input_ids"].shape  # doctest: +SKIP
    torch.Size([235, 17])
    """

    def __init__(self, examples: Examples, *, tokens: int, seed: int = 0) -> None:
        self._examples = examples
        self._tokens = tokens
        self._seed = seed
        self._longest: NDArray[np.int32] = np.maximum.reduce(examples.lengths)
        if not len(self._longest):
            raise ValueError("there must be at least one sentence to make batches of, got none")
        worst = int(self._longest.argmax())
        if self._longest[worst] > tokens:
            raise ValueError(
                f"training.tokens={tokens} must hold the longest sentence, but row {worst} has "
                f"{self._longest[worst]} tokens: raise it, or prepare the data with a lower "
                "data.max_length"
            )
        self._key = _key(examples.lengths)
        # Keep the plan of the current epoch and of the next one, which a step may also reach.
        self.plan = lru_cache(maxsize=2)(self._plan)

    def _plan(self, epoch: int) -> Plan:
        random = np.random.default_rng((self._seed, epoch))
        shuffled = random.permutation(len(self._key))
        rows = shuffled[np.argsort(self._key[shuffled], kind="stable")]
        bounds = batch_bounds(self._longest[rows], self._tokens)
        return Plan(rows, bounds, random.permutation(len(bounds) - 1))

    def forward(self, position: Position, batches: int) -> Position:
        """Return the position that is `batches` batches later."""
        epoch, batch = position.epoch, position.batch + batches
        while batch >= len(self.plan(epoch)):
            batch -= len(self.plan(epoch))
            epoch += 1
        return Position(epoch, batch)

    def at(self, position: Position) -> dict[str, Any]:
        """Return the batch at a position, with its own seed for random numbers such as dropout."""
        batch: dict[str, Any] = self._examples.collate(self.plan(position.epoch)[position.batch])
        state = np.random.SeedSequence((self._seed, *position)).generate_state(1)
        return {**batch, "seed": int(state[0])}

    def shared(self, process: int = 0, processes: int = 1) -> Iterator[dict[str, Tensor]]:
        """Yield the batches of one process for validation, so that each row is read once.

        A process takes every `processes`-th batch. All processes get equally many: one that runs
        out of batches repeats the first.
        """
        plan = self.plan(0)
        for first in range(0, len(plan), processes):
            batch = first + process
            yield self._examples.collate(plan[batch if batch < len(plan) else 0])

    def __len__(self) -> int:
        """Return the number of batches of the first epoch; other epochs may differ by one."""
        return len(self.plan(0))

    def stream(
        self, position: Position = START, *, process: int = 0, processes: int = 1
    ) -> "Stream":
        return Stream(self, position, process, processes)


class Stream(Iterator[dict[str, Any]]):
    """The endless stream of one process, which takes every `processes`-th batch.

    `position` is that of all processes together. It is right when each has taken equally many
    batches.
    """

    def __init__(self, batches: Batches, position: Position, process: int, processes: int) -> None:
        self._batches = batches
        self.position = position
        self._process = process
        self._processes = processes

    def __next__(self) -> dict[str, Any]:
        mine = self._batches.forward(self.position, self._process)
        self.position = self._batches.forward(self.position, self._processes)
        return self._batches.at(mine)


def padding_share(examples: Examples, plan: Plan) -> float:
    """Return the share of padding in all tokens of an epoch, on all sides."""
    kept = sum(int(lengths.sum()) for lengths in examples.lengths)
    made = sum(
        len(rows) * int(lengths[rows].max())
        for rows in (plan[batch] for batch in range(len(plan)))
        for lengths in examples.lengths
    )
    return 1 - kept / made


def _key(lengths: Sequence[NDArray[np.int32]]) -> Rows:
    """Return numbers that sort rows by the length of the last side, then by that of the first.

    The first side's lengths go up and down in turn, so that neighbours differ little on both sides.
    """
    last = lengths[-1].astype(np.int64)
    if len(lengths) == 1:
        return last
    first = lengths[0].astype(np.int64)
    return last * (2 * int(first.max()) + 1) + np.where(last % 2, first, -first)
