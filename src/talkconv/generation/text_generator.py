"""Raw text in, raw text out: order is kept, lines of like length are read together."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.models.beam_generate import end_tokens
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.search.beam_search import BeamSettings, Hypotheses, Ints

# (line, counted from 0; its tokens): a source that was cut off
OnCut = Callable[[int, int], None]
# how many lines more are done
OnDone = Callable[[int], object]


@dataclass(frozen=True)
class Output:
    """What a model wrote: its text, the score by which it was chosen, and its tokens, end aside."""

    text: str
    score: float
    tokens: list[int]


@dataclass(frozen=True)
class TextGenerator:
    """Generates outputs for texts, with one network and its tokenizers."""

    model: TaLKConvPreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: GenerationSettings
    # of what is written, where it is another
    target_tokenizer: PreTrainedTokenizerBase | None = None

    def outputs(
        self,
        texts: Iterable[str],
        n_best: int = 1,
        on_cut: OnCut | None = None,
        on_done: OnDone | None = None,
    ) -> Iterator[list[Output]]:
        """The n best of each text, the best first, as soon as its window of lines is done."""
        self.check(n_best)
        lines = iter(texts)
        first = 0
        while window := list(itertools.islice(lines, self.settings.read_ahead)):
            yield from self._window(window, n_best, first, on_cut, on_done)
            first += len(window)

    def check(self, n_best: int) -> None:
        """Whether so many outputs can be had."""
        beams = self.settings.num_beams
        if n_best < 1 or (n_best > beams and not self.settings.temperature):
            raise ValueError(f"n_best must be from 1 to num_beams={beams}, got {n_best}")

    def _window(
        self,
        texts: list[str],
        n_best: int,
        first: int,
        on_cut: OnCut | None,
        on_done: OnDone | None,
    ) -> list[list[Output]]:
        sources = [self._source(text) if text.strip() else [] for text in texts]
        longest = self.settings.max_source_tokens
        for line, source in enumerate(sources):
            if len(source) > longest:
                if on_cut is not None:
                    on_cut(first + line, len(source))
                sources[line] = self._cut(source)
        # an empty line is not for the model: it stays empty
        found = {line: [Output("", 0.0, [])] * n_best for line in range(len(texts))}
        for batch in batches_of(sources, self.settings.batch_tokens):
            outputs = self._batch([sources[line] for line in batch], n_best)
            found.update(zip(batch, outputs, strict=True))
            if on_done is not None:
                on_done(len(batch))
        return [found[line] for line in range(len(texts))]

    def _source(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        if self.model.config.is_encoder_decoder:
            return ids
        # a line goes on where it stops, and begins after the end of the line before
        eos = self.tokenizer.eos_token_id
        return [eos, *(ids[:-1] if ids and ids[-1] == eos else ids)]

    def _cut(self, source: list[int]) -> list[int]:
        longest = self.settings.max_source_tokens
        if not self.model.config.is_encoder_decoder:
            # what is written goes on from the end
            return source[-longest:]
        return [*source[: longest - 1], source[-1]]

    @torch.inference_mode()
    def _batch(self, sources: list[list[int]], n_best: int) -> list[list[Output]]:
        config, settings = self.model.config, self.settings
        translates = config.is_encoder_decoder
        tokens, mask = padded(sources, config.pad_token_id or 0, left=not translates)
        tokens, mask = tokens.to(self.model.device), mask.to(self.model.device)
        prompt = 1 if translates else tokens.shape[1]
        limits = [
            settings.longest(len(source)) if translates else settings.max_length
            for source in sources
        ]
        if settings.temperature:
            found = self._sampled(tokens, mask, n_best, max(limits))
        else:
            beams = self._beam_settings(prompt, np.array(limits))
            found = self.model.beam_search(tokens, beams, mask).best(n_best)
        return [
            [self._output(found, row, n, prompt) for n in range(n_best)]
            for row in range(len(sources))
        ]

    def _beam_settings(self, prompt: int, limits: Ints) -> BeamSettings:
        config, settings = self.model.config, self.settings
        return BeamSettings(
            num_beams=settings.num_beams,
            max_length=prompt + int(limits.max()),
            eos=end_tokens(config.eos_token_id),
            pad=config.pad_token_id or 0,
            length_penalty=settings.length_penalty,
            min_length=prompt + settings.min_length,
            no_repeat_ngram=settings.no_repeat_ngram,
            step_penalty=settings.stepwise_length_penalty,
            limits=prompt + limits,
        )

    def _sampled(self, tokens: Tensor, mask: Tensor, n: int, most: int) -> Hypotheses:
        """n samples of each, the likeliest first; scores are of the distribution drawn from."""
        settings = self.settings
        # transformers types these methods for models of its own
        model: Any = self.model
        answer = model.generate(
            tokens,
            attention_mask=mask,
            do_sample=True,
            num_beams=1,
            num_return_sequences=n,
            max_new_tokens=most,
            min_new_tokens=settings.min_length,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            no_repeat_ngram_size=settings.no_repeat_ngram,
            return_dict_in_generate=True,
            output_scores=True,
        )
        sequences = answer.sequences
        steps = model.compute_transition_scores(sequences, answer.scores, normalize_logits=True)
        ends = end_tokens(self.model.config.eos_token_id)
        written = _written(sequences[:, -steps.shape[1] :], ends)  # (B * n,)
        there = torch.arange(steps.shape[1], device=steps.device) < written[:, None]
        scores = steps.masked_fill(~there, 0).sum(dim=1) / written**settings.length_penalty
        lengths = sequences.shape[1] - steps.shape[1] + written
        found = (sequences.view(len(tokens), n, -1), scores.view(-1, n), lengths.view(-1, n))
        return Hypotheses(*(part.cpu().numpy() for part in found)).best(n)

    def _output(self, found: Hypotheses, row: int, n: int, prompt: int) -> Output:
        written = found.tokens[row, n, prompt : int(found.lengths[row, n])].tolist()
        ends = end_tokens(self.model.config.eos_token_id)
        tokens = [token for token in written if token not in ends]
        text = (self.target_tokenizer or self.tokenizer).decode(tokens, skip_special_tokens=True)
        # a tokenizer may know other line ends than the reader of our lines
        return Output(" ".join(str(text).split("\n")), float(found.scores[row, n]), tokens)


def generate_texts(
    model: TaLKConvPreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Iterable[str],
    settings: GenerationSettings,
    n_best: int = 1,
    on_cut: OnCut | None = None,
) -> Iterator[list[Output]]:
    """Translations, summaries or continuations of texts, in their order.

    >>> outputs = generate_texts(model, tokenizer, ["Ein Mann."], settings)  # doctest: +SKIP
    >>> next(outputs)[0].text  # doctest: +SKIP
    'A man.'
    """
    return TextGenerator(model, tokenizer, settings).outputs(texts, n_best, on_cut)


def batches_of(sources: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of sources that are not empty, in batches of like lengths; each takes at most
    batch_tokens with its padding, or is a single source."""
    batch: list[int] = []
    # the longest first: if memory runs out, it does so at once
    for index in sorted(range(len(sources)), key=lambda index: -len(sources[index])):
        if not sources[index]:
            continue
        if batch and (len(batch) + 1) * len(sources[batch[0]]) > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], pad: int, *, left: bool) -> tuple[Tensor, Tensor]:
    """Rows of ids -> tokens and mask (B, T), the mask 0 at padding."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), pad)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, row in enumerate(rows):
        at = slice(longest - len(row), longest) if left else slice(0, len(row))
        tokens[number, at] = torch.tensor(row)
        mask[number, at] = 1
    return tokens, mask


def _written(tokens: Tensor, ends: tuple[int, ...]) -> Tensor:
    """How many tokens each row has up to its end, which counts: (rows, T) -> (rows,)"""
    is_end = torch.isin(tokens, torch.tensor(ends, device=tokens.device))
    before = is_end.long().cumsum(dim=1) == 0
    return (before.sum(dim=1) + 1).clamp(max=tokens.shape[1])
