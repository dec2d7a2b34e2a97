"""Generates raw text from raw text. Lines of similar length share a batch; the order is kept.

This file does not import torch, because the network may be an exported one.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from talkconv.data.length_batches import batch_bounds
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.search.beam_search import BeamSettings, beam_search, candidates
from talkconv.search.hypotheses import Hypotheses, Rules
from talkconv.search.network import Ints, Network, end_tokens
from talkconv.search.sampling import SampleSettings, sample

# is called with the number of a line, counted from 0, and its tokens, if the line was cut
OnCut = Callable[[int, int], None]
# is called with the number of lines that were finished since the last call
OnDone = Callable[[int], object]


class TextTokenizer(Protocol):
    """The part of a tokenizer that generation needs; every tokenizer of transformers has it."""

    @property
    def eos_token_id(self) -> Any: ...

    def __call__(self, text: str) -> Mapping[str, Any]:
        """Return the ids of a text as `input_ids`, with the end of the text as the last one."""
        ...

    def decode(self, token_ids: Any, *, skip_special_tokens: bool) -> Any:
        """Return the text of ids."""
        ...


@dataclass(frozen=True)
class Output:
    """One output: its text, the score by which it was chosen, and its tokens without the end."""

    text: str
    score: float
    tokens: list[int]


@dataclass(frozen=True)
class TextGenerator:
    """Generates outputs for texts, with one network and its tokenizers."""

    network: Network
    tokenizer: TextTokenizer
    settings: GenerationSettings
    # decodes the outputs, if another tokenizer must do that
    target_tokenizer: TextTokenizer | None = None
    # draws the samples, if settings.temperature asks for them
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def outputs(
        self,
        texts: Iterable[str],
        n_best: int = 1,
        on_cut: OnCut | None = None,
        on_done: OnDone | None = None,
    ) -> Iterator[list[Output]]:
        """Yield the n best outputs of each text, as soon as its window of lines is done."""
        self.check(n_best)
        lines = iter(texts)
        first = 0
        while window := list(itertools.islice(lines, self.settings.read_ahead)):
            yield from self._window(window, n_best, first, on_cut, on_done)
            first += len(window)

    def check(self, n_best: int) -> None:
        """Raise a ValueError if the settings do not allow n_best outputs of each line."""
        beams, words = self.settings.num_beams, self.network.config.vocab_size
        if self.settings.temperature:
            if n_best < 1:
                raise ValueError(f"n_best must be at least 1, got {n_best}")
            return
        if not 1 <= n_best <= beams:
            raise ValueError(f"n_best must be from 1 to num_beams={beams}, got {n_best}")
        per_beam = candidates(1, self._ends)
        if beams * per_beam > words:
            raise ValueError(
                f"num_beams must be at most {words // per_beam} with {words} words, got {beams}"
            )

    @property
    def _ends(self) -> tuple[int, ...]:
        return end_tokens(self.network.config.eos_token_id)

    def _window(
        self,
        texts: list[str],
        n_best: int,
        first: int,
        on_cut: OnCut | None,
        on_done: OnDone | None,
    ) -> list[list[Output]]:
        sources = [self.source(text) if text.strip() else [] for text in texts]
        longest = self.settings.max_source_tokens
        for line, source in enumerate(sources):
            if len(source) > longest:
                if on_cut is not None:
                    on_cut(first + line, len(source))
                sources[line] = self._cut(source)
        # An empty line has an empty output and is not passed to the network.
        found = {line: [Output("", 0.0, [])] * n_best for line in range(len(texts))}
        for batch in batches_of(sources, self.settings.batch_tokens):
            outputs = self.batch([sources[line] for line in batch], n_best)
            found.update(zip(batch, outputs, strict=True))
            if on_done is not None:
                on_done(len(batch))
        return [found[line] for line in range(len(texts))]

    def source(self, text: str) -> list[int]:
        """Return the ids that the network reads for a text; they are not cut."""
        ids: list[int] = self.tokenizer(text)["input_ids"]
        if self.network.config.is_encoder_decoder:
            return ids
        # In training, a line follows the end token of the line before, so a prompt starts with it.
        # It has no end token of its own, because the output continues it.
        eos = self.tokenizer.eos_token_id
        if ids and ids[0] == eos:
            return ids
        # Tokenizers of other libraries and of older runs do not add the first token themselves.
        return [eos, *(ids[:-1] if ids and ids[-1] == eos else ids)]

    def _cut(self, source: list[int]) -> list[int]:
        longest = self.settings.max_source_tokens
        if not self.network.config.is_encoder_decoder:
            # the output continues the end of the prompt
            return source[-longest:]
        return [*source[: longest - 1], source[-1]]

    def batch(self, sources: list[list[int]], n_best: int) -> list[list[Output]]:
        """Return the n best outputs for the ids of each source, which are read together."""
        config, settings = self.network.config, self.settings
        has_encoder = config.is_encoder_decoder
        tokens, mask = padded(sources, config.pad_token_id or 0, left=not has_encoder)
        limits = [
            settings.longest(len(source)) if has_encoder else settings.max_length
            for source in sources
        ]
        prompt, step = self.network.begin_search(tokens, mask)
        begin = prompt.shape[1]
        if settings.temperature:
            samples = self._sample_settings(begin, np.array(limits))
            found = sample(step, prompt, samples, n_best, self.rng)
        else:
            beams = self._beam_settings(begin, np.array(limits))
            found = beam_search(step, prompt, beams).best(n_best)
        return [
            [self._output(found, row, n, begin) for n in range(n_best)]
            for row in range(len(sources))
        ]

    def _rules(self, begin: int) -> Rules:
        return Rules(self._ends, begin + self.settings.min_length, self.settings.no_repeat_ngram)

    def _beam_settings(self, begin: int, limits: Ints) -> BeamSettings:
        settings = self.settings
        return BeamSettings(
            num_beams=settings.num_beams,
            max_length=begin + int(limits.max()),
            pad=self.network.config.pad_token_id or 0,
            length_penalty=settings.length_penalty,
            rules=self._rules(begin),
            # one beam is greedy search, which stops at the first end token
            early_stopping=settings.num_beams == 1,
            step_penalty=settings.stepwise_length_penalty,
            limits=begin + limits,
        )

    def _sample_settings(self, begin: int, limits: Ints) -> SampleSettings:
        settings = self.settings
        return SampleSettings(
            max_length=begin + int(limits.max()),
            pad=self.network.config.pad_token_id or 0,
            rules=self._rules(begin),
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            length_penalty=settings.length_penalty,
            limits=begin + limits,
        )

    def _output(self, found: Hypotheses, row: int, n: int, begin: int) -> Output:
        written = found.tokens[row, n, begin : found.lengths[row, n]].tolist()
        tokens = [token for token in written if token not in self._ends]
        text = (self.target_tokenizer or self.tokenizer).decode(tokens, skip_special_tokens=True)
        # An output must be one line, but the tokens of some tokenizers contain line ends.
        return Output(" ".join(str(text).split("\n")), float(found.scores[row, n]), tokens)


def generate_texts(
    network: Network,
    tokenizer: TextTokenizer,
    texts: Iterable[str],
    settings: GenerationSettings,
    n_best: int = 1,
    on_cut: OnCut | None = None,
) -> Iterator[list[Output]]:
    """Yield translations, summaries or continuations of texts, in their order.

    >>> outputs = generate_texts(model, tokenizer, ["Ein Mann."], settings)  # doctest: +SKIP
    >>> next(outputs)[0].text  # doctest: +SKIP
    'A man.'
    """
    return TextGenerator(network, tokenizer, settings).outputs(texts, n_best, on_cut)


def batches_of(sources: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the indices of sources in batches of similar lengths. Empty sources are left out.

    A batch has at most batch_tokens tokens, padding included, unless it is a single source.
    """
    # The longest come first, so that an error for too little memory comes at once.
    order = sorted((i for i in range(len(sources)) if sources[i]), key=lambda i: -len(sources[i]))
    bounds = batch_bounds([len(sources[i]) for i in order], batch_tokens)
    for begin, end in itertools.pairwise(bounds.tolist()):
        yield order[begin:end]


def padded(rows: Sequence[Sequence[int]], pad: int, *, left: bool) -> tuple[Ints, Ints]:
    """Return rows of ids as tokens and mask (B, T); the mask is 0 at padding."""
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), pad, dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    for number, row in enumerate(rows):
        at = slice(longest - len(row), longest) if left else slice(0, len(row))
        tokens[number, at] = row
        mask[number, at] = 1
    return tokens, mask
