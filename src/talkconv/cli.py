"""The commands, a table: each is a function that lives in its room."""

from pathlib import Path
from typing import Annotated

import typer

from talkconv.bench.exactness import bench_exactness
from talkconv.bench.generate import bench_generate
from talkconv.bench.kernels import bench_kernels
from talkconv.bench.model import bench_model
from talkconv.bench.op import bench_op
from talkconv.demo import demo
from talkconv.doctor import doctor

app = typer.Typer(
    name="talkconv",
    help="Time-aware Large Kernel (TaLK) convolutions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(doctor)
app.command()(demo)


@app.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A fairseq checkpoint, .pt.")],
    dictionaries: Annotated[
        list[Path], typer.Argument(metavar="DICT...", help="Its dictionaries, the source's first.")
    ],
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
) -> None:
    """Turn a checkpoint of the authors' networks into a model folder with its tokenizer."""
    # transformers takes seconds to import, which the other commands need not wait for
    from talkconv.models.convert import convert_command

    convert_command(checkpoint, dictionaries, out)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or the path of your own .toml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[section.key=value]...", help="Changes to the recipe."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What `prepare` wrote.", show_default="data/RECIPE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run to write.", show_default="runs/RECIPE")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run stopped.")] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Train so many seeds, and choose the best by validation.")
    ] = None,
) -> None:
    """Train a recipe's network. Ctrl-C saves; --resume goes on exactly there."""
    from talkconv.training.train import Request, train_command

    train_command(Request(recipe, overrides or [], data, out, resume, seeds))


bench = typer.Typer(
    help="Measure on this machine; tables here, JSON in results/.", no_args_is_help=True
)
bench.command("op")(bench_op)
bench.command("exactness")(bench_exactness)
bench.command("model")(bench_model)
bench.command("generate")(bench_generate)
bench.command("kernels")(bench_kernels)
app.add_typer(bench, name="bench")
