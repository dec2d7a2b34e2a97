"""TextModel: a trained network for use from Python. `talkconv.load` returns one."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION, TRANSLATION
from talkconv.generation.text_generator import OnCut, Output, TextGenerator, TextTokenizer
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.search.network import Network

# the method that fits each task
_METHODS = {
    TRANSLATION: "translate",
    SUMMARIZATION: "summarize",
    LANGUAGE_MODELLING: "complete",
}


@dataclass(frozen=True)
class TextModel:
    """Generates an output for each line, with a network and the settings that were chosen for it.

    Lines are read in batches of similar lengths, as in `talkconv generate`, and the outputs keep
    their order. A single string gives a single string. Keywords change settings of generation for
    one call; they are the fields of GenerationSettings, and `beams` is short for `num_beams`.

    >>> model = talkconv.load("runs/mine")  # doctest: +SKIP
    >>> model.translate(["Ein Mann schläft.", "Er träumt."])  # doctest: +SKIP
    ['A man sleeps.', 'He dreams.']
    """

    network: Network
    tokenizer: TextTokenizer
    # the settings of generation that are used unless a call changes them
    settings: GenerationSettings
    # translation, summarization or language_modelling
    task: str
    # decodes the outputs, if another tokenizer must do that
    target_tokenizer: TextTokenizer | None = None

    @overload
    def translate(self, lines: str, **changes: Any) -> str: ...
    @overload
    def translate(self, lines: Iterable[str], **changes: Any) -> list[str]: ...
    def translate(self, lines: str | Iterable[str], **changes: Any) -> str | list[str]:
        """Return the translation of each line."""
        self._check_task(TRANSLATION)
        return self.generate(lines, **changes)

    @overload
    def summarize(self, lines: str, **changes: Any) -> str: ...
    @overload
    def summarize(self, lines: Iterable[str], **changes: Any) -> list[str]: ...
    def summarize(self, lines: str | Iterable[str], **changes: Any) -> str | list[str]:
        """Return the summary of each line, which is a whole text."""
        self._check_task(SUMMARIZATION)
        return self.generate(lines, **changes)

    @overload
    def complete(self, lines: str, **changes: Any) -> str: ...
    @overload
    def complete(self, lines: Iterable[str], **changes: Any) -> list[str]: ...
    def complete(self, lines: str | Iterable[str], **changes: Any) -> str | list[str]:
        """Return the continuation of each line, without the line itself."""
        self._check_task(LANGUAGE_MODELLING)
        return self.generate(lines, **changes)

    @overload
    def generate(self, lines: str, **changes: Any) -> str: ...
    @overload
    def generate(self, lines: Iterable[str], **changes: Any) -> list[str]: ...
    def generate(self, lines: str | Iterable[str], **changes: Any) -> str | list[str]:
        """Return the best output of each line, whatever the task is.

        Samples (`temperature=0.8`) differ from call to call unless `seed` is given.
        """
        if isinstance(lines, str):
            return self.generate([lines], **changes)[0]
        return [output.text for (output,) in self.outputs(lines, **changes)]

    def outputs(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        seed: int | np.random.Generator | None = None,
        on_cut: OnCut | None = None,
        **changes: Any,
    ) -> Iterator[list[Output]]:
        """Return an iterator over the n best outputs of each line, with their scores.

        At most settings.read_ahead lines are read before the first output. A line with more than
        settings.max_source_tokens tokens is cut. Then `on_cut` is called with the number of the
        line, counted from 0, and its number of tokens. Without `on_cut` there is a warning.
        """
        if isinstance(lines, str):
            raise TypeError(
                "lines must be an iterable of strings, got one string: put it in a list"
            )
        generator = self._generator(changes, np.random.default_rng(seed))
        generator.check(n_best)
        warn = partial(_warn_of_cut, most=generator.settings.max_source_tokens)
        return generator.outputs(_checked(lines), n_best, on_cut or warn)

    def _generator(self, changes: dict[str, Any], rng: np.random.Generator) -> TextGenerator:
        beams = changes.pop("beams", None)
        if beams is not None:
            changes["num_beams"] = beams
        settings = self.settings.changed(changes)
        return TextGenerator(self.network, self.tokenizer, settings, self.target_tokenizer, rng)

    def _check_task(self, task: str) -> None:
        if task != self.task:
            raise ValueError(
                f"this network was trained for the task {self.task!r}: "
                f"use .{_METHODS[self.task]}(lines) instead of .{_METHODS[task]}(lines)"
            )


def _warn_of_cut(line: int, tokens: int, most: int) -> None:
    warnings.warn(
        f"line {line + 1} has {tokens} tokens, but only {most} are read: split it, or pass a "
        "larger max_source_tokens",
        stacklevel=2,
    )


def _checked(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise TypeError(f"lines must be strings, got {type(line).__name__} as line {number}")
        yield line
