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
def prepare(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or its TOML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[SECTION.KEY=VALUE]...", help="Changes to it.")
    ] = None,
    raw: Annotated[Path | None, typer.Option(help="The folder of the raw text.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; data/RECIPE unless given.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores unless given.")] = None,
) -> None:
    """Turn raw text into token ids and a tokenizer, as a recipe says."""
    from talkconv.data.prepare import prepare_command
    from talkconv.training.recipe import read_recipe

    prepare_command(lambda: read_recipe(recipe, overrides or []), raw, out, workers)


bench = typer.Typer(
    help="Measure on this machine; tables here, JSON in results/.", no_args_is_help=True
)
bench.command("op")(bench_op)
bench.command("exactness")(bench_exactness)
bench.command("model")(bench_model)
bench.command("generate")(bench_generate)
bench.command("kernels")(bench_kernels)
app.add_typer(bench, name="bench")
