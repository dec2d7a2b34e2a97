"""The table of all commands. The functions that do the work are in other folders.

A command's function is imported when the command runs, because importing torch and transformers
takes seconds, and the help and some commands do not need them. Errors that can be found without
them are reported before the import.
"""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import talkconv
from talkconv.files import check_new
from talkconv.messages import one_message
from talkconv.runs.card import RunCard
from talkconv.runs.find_network import find_network

app = typer.Typer(
    name="talkconv",
    help="Time-aware Large Kernel (TaLK) convolutions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"talkconv {talkconv.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Time-aware Large Kernel (TaLK) convolutions."""


@app.command()
def doctor(
    full: Annotated[
        bool, typer.Option("--full", help="Ask torch too: its threads, GPUs and results.")
    ] = False,
) -> None:
    """Print what runs on this machine and why, and check the operation on a small example."""
    from talkconv.doctor import doctor

    doctor(full)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page, the data and the run.")] = Path(
        "demo"
    ),
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION.KEY=VALUE]...", help="Changes to its recipe."),
    ] = None,
) -> None:
    """Train a small network on the built-in corpus, and write a page about it."""
    from talkconv.training.recipe import read_recipe

    with one_message("no demo"):
        read_recipe("toy", overrides or [])
    from talkconv.demo.command import demo_command

    demo_command(out, overrides or [])


@app.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A fairseq checkpoint, .pt.")],
    dictionaries: Annotated[
        list[Path], typer.Argument(metavar="DICT...", help="Its dictionaries, the source's first.")
    ],
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
) -> None:
    """Turn a checkpoint of the authors' networks into a model folder with its tokenizer."""
    with one_message("not converted"):
        for file in (checkpoint, *dictionaries):
            if not file.is_file():
                raise ValueError(f"{file} is not a file")
    from talkconv.runs.convert import convert_command

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
    from talkconv.training.recipe import read_recipe

    with one_message("not prepared"):
        read = read_recipe(recipe, overrides or [])
    from talkconv.data.prepare import prepare_command

    prepare_command(read, raw, out, workers)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or the path of your own .toml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[section.key=value]...", help="Changes to the recipe."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The prepared data.", show_default="data/RECIPE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the run.", show_default="runs/RECIPE")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that stopped.")] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Train with this many seeds, and choose the best.")
    ] = None,
) -> None:
    """Train a recipe's network. Ctrl-C saves the run, and --resume continues it exactly there."""
    from talkconv.training.command import train_command
    from talkconv.training.request import Request

    train_command(Request(recipe, overrides or [], data, out, resume, seeds))


RunArgument = Annotated[Path, typer.Argument(help="A run, an export, or a model's folder.")]
ModelOption = Annotated[
    str | None,
    typer.Option(
        help="best, last or averaged of a run, float32 or int8 of an export. The default is in its "
        "card."
    ),
]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Threads that compute; all cores unless given.")
]


@app.command()
def generate(
    run: RunArgument,
    file: Annotated[str, typer.Argument(help="One input per line; - is standard input.")] = "-",
    model: ModelOption = None,
    n_best: Annotated[int, typer.Option(help="Outputs for each line, the best first.")] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Print scores first.")] = False,
    beams: Annotated[int | None, typer.Option(help="Number of beams; 1 is greedy.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Larger gives longer outputs.")
    ] = None,
    stepwise_length_penalty: Annotated[
        float | None, typer.Option(help="Cost of each token; a negative cost is a reward.")
    ] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="3 repeats no trigram.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest tokens of an output.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most tokens of an output.")] = None,
    max_source_tokens: Annotated[int | None, typer.Option(help="Longer lines are cut.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Above 0, sample from a language model.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="Sample from the likeliest tokens with this total probability."),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from this many tokens.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of samples.")] = 0,
    batch_tokens: Annotated[int | None, typer.Option(help="Source tokens in a batch.")] = None,
    threads: ThreadsOption = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Greedy, unless --beams; int8, if the export has it.")
    ] = False,
) -> None:
    """Translate, summarize or continue text, line by line."""
    from talkconv.generation.generate import generate_command
    from talkconv.loading import load
    from talkconv.serving.export_card import fastest_network

    model = model or (fastest_network(run) if fast else None)
    changes = dict(
        num_beams=1 if fast and beams is None else beams,
        length_penalty=length_penalty,
        stepwise_length_penalty=stepwise_length_penalty,
        no_repeat_ngram=no_repeat_ngram,
        min_length=min_length,
        max_length=max_length,
        max_source_tokens=max_source_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        batch_tokens=batch_tokens,
    )
    generate_command(
        lambda: load(run, model, threads=threads),
        file,
        n_best=n_best,
        scores=scores,
        seed=seed,
        changes=changes,
    )


@app.command()
def evaluate(
    run: Annotated[
        Path | None, typer.Argument(help="A run or an export. Without one, files are scored.")
    ] = None,
    split: Annotated[str, typer.Option(help="A split of the run's data.")] = "test",
    model: ModelOption = None,
    data: Annotated[Path | None, typer.Option(help="The prepared data, if it moved.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="A file of outputs to score.")] = None,
    references: Annotated[Path | None, typer.Option(help="A file of correct outputs.")] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="How to score files, repeatable: tokenized, tokenized-lc, compound, detok, "
            "sacrebleu, sacrebleu-lc, sacrebleu-intl, chrf, chrf-lc, rouge, rouge-score."
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Other outputs, to test whether the scores differ.")
    ] = None,
    beams: Annotated[int | None, typer.Option(help="Number of beams; 1 is greedy.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Larger gives longer outputs.")
    ] = None,
    streaming: Annotated[
        bool, typer.Option("--streaming", help="Perplexity of one stream, not of blocks.")
    ] = False,
) -> None:
    """Score a run, an export, or outputs in files, by every protocol that papers use."""
    from talkconv.evaluation.evaluate import evaluate_command
    from talkconv.serving.export_card import is_export

    of_export: dict[str, Any] = {}
    if run is not None and is_export(run):
        # onnxruntime is not needed for runs
        from talkconv.serving.evaluate_export import open_export, perplexity_of_export

        of_export = dict(open_folder=open_export, perplexity_of=perplexity_of_export)
    evaluate_command(
        run,
        hypotheses=hypotheses,
        references=references,
        protocols=protocol,
        split=split,
        model=model,
        data=data,
        baseline=baseline,
        changes=dict(num_beams=beams, length_penalty=length_penalty),
        streaming=streaming,
        **of_export,
    )


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A run, or a model's folder.")],
    folder: Annotated[Path, typer.Argument(help="The folder to write; it must be new.")],
    model: ModelOption = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Write an int8 network too, and compare the scores.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="The prepared data, if it moved.")] = None,
    lines: Annotated[
        Path | None, typer.Option(help="Lines to compare outputs on, if there is no data.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many lines of the validation set.")
    ] = None,
) -> None:
    """Write a network as ONNX files that run without PyTorch, after comparing the two."""
    with one_message("not exported"):
        check_new(folder)
        find_network(run, model)
    from talkconv.serving.export import ExportRequest, export_command

    export_command(ExportRequest(run, folder, model, int8, data, lines, limit))


@app.command()
def serve(
    folder: RunArgument,
    model: ModelOption = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines ask.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 8000,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="TALKCONV_API_KEY", help="Clients must send it as api_key."),
    ] = None,
    allow_origin: Annotated[
        str | None, typer.Option(help="Pages of this origin may ask; *: all pages.")
    ] = None,
    threads: ThreadsOption = None,
    batch: Annotated[int | None, typer.Option(help="Sentences read together at most.")] = None,
    queue: Annotated[int | None, typer.Option(help="Sentences that may wait at most.")] = None,
    max_sentences: Annotated[int | None, typer.Option(help="Sentences of a request.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of a sentence.")] = None,
    max_body: Annotated[int | None, typer.Option(help="Bytes of a request.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for an answer.")] = None,
    drain: Annotated[
        float | None, typer.Option(help="Seconds to finish what runs when told to stop.")
    ] = None,
) -> None:
    """Serve a network over HTTP, with a page; LibreTranslate's clients can ask it."""
    from talkconv.serving.server.serve import serve_command

    given: dict[str, Any] = dict(
        batch=batch,
        queue=queue,
        max_sentences=max_sentences,
        max_tokens=max_tokens,
        max_body=max_body,
        timeout=timeout,
        drain=drain,
    )
    options = {name: value for name, value in given.items() if value is not None}
    options |= dict(host=host, port=port, api_key=api_key, allow_origin=allow_origin)
    serve_command(folder, options, model=model, threads=threads)


@app.command()
def average(
    run: Annotated[Path, typer.Argument(help="A run that `talkconv train` wrote.")],
    last: Annotated[int, typer.Option(help="The number of checkpoints.")] = 10,
) -> None:
    """Average the weights of a run's last checkpoints into RUN/averaged."""
    with one_message("not averaged"):
        RunCard.read(run)
    from talkconv.training.average import average_command

    average_command(run, last)


@app.command()
def tune(
    run: Annotated[Path, typer.Argument(help="A run that `talkconv train` wrote.")],
    length_penalty: Annotated[
        list[float] | None, typer.Option(help="A length penalty to try, repeatable.")
    ] = None,
    checkpoints: Annotated[
        list[int] | None, typer.Option(help="A number of checkpoints to try, repeatable.")
    ] = None,
    lines: Annotated[
        int | None, typer.Option(help="Use only this many lines of the validation set.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The prepared data, if it moved.")] = None,
) -> None:
    """Choose the length penalty and the averaging of a run on the validation set."""
    with one_message("not tuned"):
        RunCard.read(run)
    from talkconv.training.tune import LENGTH_PENALTIES, tune_command

    penalties = length_penalty or LENGTH_PENALTIES
    tune_command(run, length_penalties=penalties, checkpoints=checkpoints, lines=lines, data=data)


@app.command()
def report(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUNS]...", help="Folders with runs in them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the page.")] = Path("results"),
    plan: Annotated[
        Path | None, typer.Option(help="The list of runs; OUT/plan.toml unless given.")
    ] = None,
    speed: Annotated[
        bool, typer.Option("--speed", help="Measure the speed of finished runs first.")
    ] = False,
) -> None:
    """Collect scores, logs and windows of runs, and write a page with tables and pictures."""
    from talkconv.report.command import report_command

    report_command(folders or [], out, plan, speed=speed)


@app.command()
def reproduce(
    raw: Annotated[Path, typer.Argument(help="The folder with the raw text of all corpora.")],
    root: Annotated[Path, typer.Option(help="The folder of data/ and runs/.")] = Path(),
    out: Annotated[Path, typer.Option(help="The folder of the page.")] = Path("results"),
    plan: Annotated[
        Path | None, typer.Option(help="The list of runs; OUT/plan.toml unless given.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="The name of a run, repeatable. Default: all runs.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time, with one thread each.")] = 2,
    speed: Annotated[
        bool, typer.Option(help="Measure speed at the end, when nothing else runs.")
    ] = True,
) -> None:
    """Train and score all runs of the results. After Ctrl-C, the same command continues."""
    from talkconv.report.reproduce import reproduce_command

    reproduce_command(
        raw, root=root, results=out, plan=plan, only=only or [], jobs=jobs, speed=speed
    )


@app.command()
def plan(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe's name, or the path of your own .toml.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[section.key=value]...", help="Changes to the recipe."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a page about all shipped recipes instead.")
    ] = None,
) -> None:
    """Estimate the memory of a training, and its hours here and on GPUs."""
    from talkconv.training.recipe import read_recipe

    if recipe is not None:
        with one_message("not planned"):
            read_recipe(recipe, overrides or [])
    from talkconv.bench.plan import plan_command

    plan_command(recipe, overrides or [], out)


_BENCHMARKS = {
    "all": "talkconv.bench.everything",
    "op": "talkconv.bench.op",
    "exactness": "talkconv.bench.exactness",
    "model": "talkconv.bench.model",
    "generate": "talkconv.bench.generation",
    "serve": "talkconv.bench.serve",
    "kernels": "talkconv.bench.kernels",
    "gpu": "talkconv.bench.gpu_times",
    "page": "talkconv.bench.page.write",
    "compare": "talkconv.bench.compare",
    "check": "talkconv.bench.check",
}


class _Benchmarks(TyperGroup):
    """Imports a benchmark only when it is called, because it needs torch and exports do not."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_BENCHMARKS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _BENCHMARKS:
            return None
        one = typer.Typer(add_completion=False)
        one.command(cmd_name)(getattr(import_module(_BENCHMARKS[cmd_name]), f"bench_{cmd_name}"))
        return typer.main.get_command(one)


bench = typer.Typer(
    cls=_Benchmarks, help="Measure on this machine, and print tables.", no_args_is_help=True
)
bench.callback()(lambda: None)
app.add_typer(bench, name="bench")
