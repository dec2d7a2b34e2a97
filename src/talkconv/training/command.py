"""`talkconv train`: prints errors as one message, and the command that resumes a stopped run."""

import sys

import typer
from rich.console import Console
from rich.markup import escape

from talkconv.messages import INTERRUPTED
from talkconv.training import freed_memory
from talkconv.training.processes import process
from talkconv.training.progress import Diverged
from talkconv.training.request import Request
from talkconv.training.train import train_request

# The exit code of a training that diverged. Resuming it from its checkpoint would not help.
DIVERGED = 3


def train_command(request: Request) -> None:
    """Train for the command line."""
    freed_memory.keep()
    # of the processes that torchrun starts, only the first one prints
    console = Console(quiet=process() > 0)
    try:
        done = train_request(request, console).finished
    except (ValueError, OSError, Diverged) as error:
        console.print(
            f"[bold red]not trained:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        if isinstance(error, OSError):
            _say_how_to_go_on(request, console)
        raise typer.Exit(DIVERGED if isinstance(error, Diverged) else 1) from error
    except KeyboardInterrupt:
        console.print("stopped at once.", highlight=False)
        done = False
    finally:
        _leave_the_others()
    if not done:
        _say_how_to_go_on(request, console)
        raise typer.Exit(INTERRUPTED)


def _say_how_to_go_on(request: Request, console: Console) -> None:
    console.print(
        f"To go on: [bold]{escape(request.command())}[/]", highlight=False, soft_wrap=True
    )


def _leave_the_others() -> None:
    """Leave the process group, if torch was imported at all before the error."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
