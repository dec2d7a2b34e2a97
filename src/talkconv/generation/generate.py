"""`talkconv generate`: lines in, lines out."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, TextIO

import torch

from talkconv.generation.text_generator import Output, TextGenerator
from talkconv.messages import one_message
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.runs.open_run import open_run

# how long a line waits for others that come with it
TOGETHER = 0.02


def generate(
    run: Path,
    file: str = "-",
    *,
    model: str | None = None,
    n_best: int = 1,
    scores: bool = False,
    seed: int = 0,
    changes: dict[str, float | int | None] | None = None,
    out: TextIO | None = None,
) -> None:
    """Write what the run's model makes of each line of `file` (-: standard input).

    `changes` are settings of generation that differ from the recipe's. An output is a line;
    with `scores` its score comes first, with n_best > 1 the number of its line does, between tabs.
    """
    opened = open_run(run, model)
    settings = opened.card.generation.changed(changes or {})
    torch.manual_seed(seed)
    generator = TextGenerator(opened.model, opened.tokenizer, settings, opened.target_tokenizer)
    generator.check(n_best)
    name = "standard input" if file == "-" else file
    said = CutLines(name, settings)
    out = out or sys.stdout
    for number, outputs in enumerate(_outputs(generator, file, n_best, said), start=1):
        for output in outputs:
            print(_line(output, number if n_best > 1 else None, scores), file=out)
        out.flush()


def generate_command(run: Path, file: str, **options: Any) -> None:
    """generate() for the command line."""
    with one_message("not generated"):
        generate(run, file, **options)


class CutLines:
    """Says which lines were too long, by their number."""

    def __init__(self, name: str, settings: GenerationSettings) -> None:
        self.name = name
        self.most = settings.max_source_tokens
        # of the first line of the window that is worked on
        self.first = 1

    def __call__(self, line: int, tokens: int) -> None:
        print(
            f"{self.name}:{self.first + line}: {tokens} tokens, of which {self.most} are read "
            "(max_source_tokens)",
            file=sys.stderr,
        )


def _outputs(
    generator: TextGenerator, file: str, n_best: int, said: CutLines
) -> Iterator[list[Output]]:
    if file != "-":
        with open_text(Path(file)) as lines:
            yield from generator.outputs(_without_ends(lines, file), n_best, said)
        return
    lines_in = _without_ends(sys.stdin, "standard input")
    for window in windows(lines_in, generator.settings.read_ahead):
        yield from generator.outputs(window, n_best, said)
        said.first += len(window)


def windows(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Lists of the lines that have come, at least one: who types a line gets an answer to it."""
    waiting: Queue[str | Exception | None] = Queue(maxsize=most)
    Thread(target=_fill, args=(lines, waiting), daemon=True).start()
    while True:
        came = [waiting.get()]
        time.sleep(TOGETHER)
        while len(came) < most and not waiting.empty():
            came.append(waiting.get())
        window = [line for line in came if isinstance(line, str)]
        if window:
            yield window
        end = came[-1]
        if isinstance(end, Exception):
            raise end
        if end is None:
            return


def _fill(lines: Iterable[str], waiting: "Queue[str | Exception | None]") -> None:
    try:
        for line in lines:
            waiting.put(line)
    except Exception as error:
        # it belongs to who asked for the lines
        waiting.put(error)
    else:
        waiting.put(None)


def open_text(path: Path) -> TextIO:
    # a line ends at \n alone: a sentence may hold any of Unicode's other line separators
    return path.open(encoding="utf-8", newline="\n")


def _without_ends(lines: Iterable[str], name: str) -> Iterator[str]:
    try:
        for line in lines:
            yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be text in UTF-8: {error}") from error


def _line(output: Output, number: int | None, scores: bool) -> str:
    columns = [] if number is None else [str(number)]
    columns += [f"{output.score:.4f}"] if scores else []
    return "\t".join([*columns, output.text])
