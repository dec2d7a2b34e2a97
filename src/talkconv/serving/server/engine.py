"""The calls of a server to a network: ids of a text, outputs for a batch, windows of a sentence."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from talkconv.generation.text_generator import Output, TextGenerator
from talkconv.generation.text_model import TextModel
from talkconv.report.looks import DecoderLook, Look
from talkconv.runs.card import RunCard
from talkconv.serving.server.watched_network import WatchedNetwork

# the windows of a network over the ids of a source and of an output; None: it has no windows
Windows = Callable[[str, list[int], list[int]], Look | DecoderLook]


@dataclass(frozen=True)
class WriteOptions:
    """The options of an output. Sentences with equal options share a batch."""

    n_best: int = 1
    # settings of generation that differ from the network's own, by name
    changes: tuple[tuple[str, Any], ...] = ()
    # the seed of samples; None if nothing is drawn
    seed: int | None = None


@dataclass(frozen=True)
class Sentence:
    """The ids of a sentence, and who wants to see its output while it is written."""

    source: list[int]
    on_text: Callable[[str], object] | None = None


@dataclass(frozen=True)
class LookRequest:
    """A sentence and its output, whose windows are wanted."""

    text: str
    source: list[int]
    target: list[int]


class Engine:
    """Answers batches of one kind; a server calls it from a single thread."""

    def __init__(self, model: TextModel, card: RunCard, windows: Windows | None) -> None:
        self.model = model
        self.card = card
        self._windows = windows

    @property
    def has_windows(self) -> bool:
        """Return whether the network has windows to show."""
        return self._windows is not None

    def encode(self, text: str) -> list[int]:
        """Return the ids that the network reads for a sentence."""
        return self._generator(WriteOptions()).source(text)

    def encode_output(self, text: str) -> list[int]:
        """Return the ids of a text as if the network had written it, with its end."""
        tokenizer: Any = self.model.target_tokenizer or self.model.tokenizer
        encode = getattr(tokenizer, "encode_target", None)
        ids: list[int] = encode(text) if encode else tokenizer(text_target=text)["input_ids"]
        return ids

    def check(self, options: WriteOptions) -> None:
        """Raise a ValueError if outputs cannot be generated with these options."""
        self._generator(options).check(options.n_best)

    def run(self, key: Hashable, payloads: list[Any]) -> Sequence[Any]:
        """Answer a batch: the outputs of sentences, or the windows over one."""
        if isinstance(key, WriteOptions):
            return self.write(key, payloads)
        return [self.look(payload) for payload in payloads]

    def write(self, options: WriteOptions, sentences: list[Sentence]) -> list[list[Output]]:
        """Return the n best outputs of each sentence."""
        generator = self._generator(options)
        if any(sentence.on_text for sentence in sentences):
            watched = WatchedNetwork(self.model.network, self._teller(sentences))
            generator = replace(generator, network=watched)
        return generator.batch([sentence.source for sentence in sentences], options.n_best)

    def look(self, request: LookRequest) -> Look | DecoderLook:
        """Return how far each token of a sentence and of its output looks."""
        assert self._windows is not None, "the server offers no windows without them"
        return self._windows(request.text, request.source, request.target)

    def _teller(self, sentences: list[Sentence]) -> Callable[[int, list[int]], None]:
        tokenizer = self.model.target_tokenizer or self.model.tokenizer

        def tell(sentence: int, tokens: list[int]) -> None:
            on_text = sentences[sentence].on_text
            if on_text is not None:
                on_text(str(tokenizer.decode(tokens, skip_special_tokens=True)))

        return tell

    def _generator(self, options: WriteOptions) -> TextGenerator:
        model = self.model
        return TextGenerator(
            model.network,
            model.tokenizer,
            model.settings.changed(dict(options.changes)),
            model.target_tokenizer,
            np.random.default_rng(options.seed),
        )
