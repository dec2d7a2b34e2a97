"""Messages to the user: errors as one message without a traceback, and "did you mean"."""

import contextlib
import difflib
import os
import sys
from collections.abc import Iterable, Iterator

import typer
from rich.console import Console
from rich.markup import escape

# The exit code that shells give to a program that Ctrl-C ended.
INTERRUPTED = 130


@contextlib.contextmanager
def one_message(failed: str, interrupted: str | None = None) -> Iterator[None]:
    """End the command with one message if the user made a mistake.

    The message is `failed` and the text of the error. `interrupted` is the message after Ctrl-C.
    """
    try:
        yield
    except BrokenPipeError:
        # The program that reads our output has ended. Python must not print an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (ValueError, OSError) as error:
        say(f"[bold red]{failed}:[/] {escape(str(error))}")
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        if interrupted is None:
            raise
        say(f"[bold]interrupted:[/] {escape(interrupted)}")
        raise typer.Exit(INTERRUPTED) from None


def say(message: str) -> None:
    """Print a message with rich's markup to standard error, without line breaks."""
    Console(stderr=True).print(message, highlight=False, soft_wrap=True)


def can_redraw(console: Console) -> bool:
    """Return whether a progress bar can be redrawn in place, as in a real terminal.

    In a log file or a notebook, each drawing of the bar would stay as a separate line. The output
    of `!talkconv` in a notebook looks like a terminal, but is not one.
    """
    in_notebook = "JPY_PARENT_PID" in os.environ or "COLAB_RELEASE_TAG" in os.environ
    return console.is_interactive and console.file.isatty() and not in_notebook


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "there are") -> str:
    """Return a hint about a word that is not among the known ones.

    >>> did_you_mean("atention", ["talk", "attention"])
    "did you mean 'attention'?"
    >>> did_you_mean("x", ["talk", "attention"])
    'there are talk, attention'
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"{otherwise} {', '.join(known)}"
