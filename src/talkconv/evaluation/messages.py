"""What went wrong on the command line: one message, without a traceback."""

import contextlib
import os
import sys
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.markup import escape


@contextlib.contextmanager
def one_message(failed: str) -> Iterator[None]:
    """The caller's mistakes, within, end the command: `failed`, and what must hold."""
    try:
        yield
    except BrokenPipeError:
        # whoever read our lines has had enough; Python must not complain at its end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (ValueError, OSError) as error:
        message = f"[bold red]{failed}:[/] {escape(str(error))}"
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
