"""The commands, a table: each is a function that lives in its room."""

import typer

app = typer.Typer(
    name="talkconv",
    help="Time-aware Large Kernel (TaLK) convolutions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
