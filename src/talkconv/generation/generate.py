"""`talkconv generate` reads lines and writes an output for each of them."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, TextIO

import numpy as np

from talkconv.data.lines import decoded, read_lines
from talkconv.generation.text_generator import Output
from talkconv.generation.text_model import TextModel
from talkconv.messages import one_message
from talkconv.runs.generation_settings import GenerationSettings

# how many seconds a line of standard input waits for others that come with it
TOGETHER = 0.02

OutputsOf = Callable[[Iterable[str]], Iterator[list[Output]]]


def generate(
    model: TextModel,
    file: str = "-",
    *,
    n_best: int = 1,
    scores: bool = False,
    seed: int = 0,
    changes: dict[str, float | int | None] | None = None,
    out: TextIO | None = None,
) -> None:
    """Write the model's outputs for each line of `file`, which is standard input if it is "-".

    `changes` are settings of generation that differ from the model's; None changes nothing. Each
    output is one line. With `scores`, the line starts with the score of the output, and with
    n_best > 1 with the number of the input line. Tabs separate them.
    """
    model = replace(model, settings=model.settings.changed(changes or {}))
    name = "standard input" if file == "-" else file
    on_cut = CutLines(name, model.settings)
    outputs_of = partial(
        model.outputs, n_best=n_best, seed=np.random.default_rng(seed), on_cut=on_cut
    )
    # a wrong number of outputs raises an error here, before the first line is read
    outputs_of([])
    out = out or sys.stdout
    for number, outputs in enumerate(_outputs(outputs_of, model, file, on_cut), start=1):
        for output in outputs:
            print(_line(output, number if n_best > 1 else None, scores), file=out)
        out.flush()


def generate_command(open_model: Callable[[], TextModel], file: str, **options: Any) -> None:
    """Run generate() for the command line, with the model that open_model() returns."""
    with one_message("not generated"):
        generate(open_model(), file, **options)


class CutLines:
    """Prints which lines were cut, by their number."""

    def __init__(self, name: str, settings: GenerationSettings) -> None:
        self.name = name
        self.most = settings.max_source_tokens
        # the number of the first line in the current window
        self.first = 1

    def __call__(self, line: int, tokens: int) -> None:
        print(
            f"{self.name}:{self.first + line}: {tokens} tokens, but only {self.most} are read "
            "(max_source_tokens)",
            file=sys.stderr,
        )


def _outputs(
    outputs_of: OutputsOf, model: TextModel, file: str, on_cut: CutLines
) -> Iterator[list[Output]]:
    if file != "-":
        yield from outputs_of(read_lines(Path(file), may_be_empty=True))
        return
    # Read bytes, because in text mode a carriage return alone would end a line, too.
    lines_in = decoded(sys.stdin.buffer, "standard input")
    for window in windows(lines_in, model.settings.read_ahead):
        yield from outputs_of(window)
        on_cut.first += len(window)


def windows(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield lists of the lines that have arrived, so that a typed line is answered at once."""
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
        # the thread that reads the lines raises it again
        waiting.put(error)
    else:
        waiting.put(None)


def _line(output: Output, number: int | None, scores: bool) -> str:
    columns = [] if number is None else [str(number)]
    columns += [f"{output.score:.4f}"] if scores else []
    return "\t".join([*columns, output.text])
