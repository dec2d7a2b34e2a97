"""`talkconv demo`: trains a network on the built-in corpus, and writes a page about it."""

import contextlib
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from transformers.utils.logging import disable_progress_bar

from talkconv.data.prepare import prepare
from talkconv.data.prepared import Prepared
from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.demo.page import Findings, write_page
from talkconv.demo.speed import LENGTHS, Speed, measure_speed
from talkconv.demo.translations import Translation, bleu_of, chosen, translate
from talkconv.demo.windows import looks
from talkconv.machine import describe_machine
from talkconv.messages import one_message
from talkconv.models import TaLKConvForConditionalGeneration
from talkconv.runs.open_run import open_run
from talkconv.training.log_file import read_log
from talkconv.training.recipe import Recipe, read_recipe
from talkconv.training.request import Request
from talkconv.training.train_run import train_run

RECIPE = "toy"
# (reason, command); the last one is how the demo ends
COMMANDS = (
    (
        "Translate a sentence of your own with the network that was just trained",
        "echo 'Der Hund, den ich sehe, schläft.' | {talkconv} generate {run}",
    ),
    (
        "Score it on all test sentences, in every way BLEU is computed",
        "{talkconv} evaluate {run} --split test",
    ),
    (
        "Train the same network with attention instead of windows",
        "{talkconv} train toy --data {data} --out runs/attention model.mixer=attention",
    ),
    (
        "Train on your own text, as docs/train-your-own.md explains",
        "{talkconv} prepare mine.toml --raw text && {talkconv} train mine.toml",
    ),
    (
        "Start a server with this network; its page, where you can type, is http://127.0.0.1:8000",
        "{talkconv} serve {run}",
    ),
)


def demo_command(out: Path, overrides: Sequence[str]) -> None:
    """Run run_demo() for the command line."""
    # transformers would show progress bars for small files between our own lines
    disable_progress_bar()
    with one_message("no demo", interrupted="run it again to start from the beginning"):
        run_demo(out, overrides, Console())


def run_demo(out: Path, overrides: Sequence[str], console: Console) -> Findings:
    """Prepare data, train, translate, measure and write the page. `overrides` change the recipe."""
    began = time.monotonic()
    data, run = out / "data", out / "run"
    recipe = read_recipe(RECIPE, overrides)
    _check_mixer(recipe)
    _clear(data, run)
    _say(console, "A grammar makes a corpus of German and English")
    prepared = prepare(recipe.task, recipe.data, None, data, recipe=recipe.name, console=console)
    _say(console, "A network of TaLK convolutions learns to translate it")
    seconds = _train(Request(RECIPE, overrides, data, run), console)
    _say(console, "It translates sentences that it has never seen")
    found = _find_out(run, prepared, seconds, console)
    write_page(found, out / "index.html")
    _say_goodbye(found, out / "index.html", time.monotonic() - began, console)
    return found


def _check_mixer(recipe: Recipe) -> None:
    network = recipe.network(vocab_size=recipe.data.vocabulary or 1)
    mixers = {str(network.encoder_mixer), str(network.decoder_mixer)}
    if mixers != {"talk"}:
        raise ValueError(f"the demo shows windows, so model.mixer must be talk, got {mixers}")


def _train(request: Request, console: Console) -> float:
    """Train the network, and return the seconds it took."""
    began = time.monotonic()
    if not train_run(request, console).finished:
        raise ValueError(
            f"training was interrupted. To continue it without the page: {request.command()}"
        )
    return time.monotonic() - began


def _find_out(run: Path, prepared: Prepared, seconds: float, console: Console) -> Findings:
    opened = open_run(run)
    model, tokenizer = opened.model, opened.tokenizer
    assert isinstance(model, TaLKConvForConditionalGeneration)
    assert isinstance(tokenizer, TaLKConvTokenizer)
    translations = translate(opened, prepared)
    bleu = bleu_of(translations)
    console.print(_table_of(translations))
    console.print(f"\n[bold]BLEU {bleu:.1f}[/] on {len(translations)} sentences", highlight=False)
    _say(console, "How fast is the operation on this machine?")
    return Findings(
        bleu=bleu,
        translations=translations,
        log=read_log(run),
        sentences=looks(model, tokenizer, translations),
        speed=_measured(console),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        pairs=len(prepared.split("train")),
        seconds=seconds,
        machine=describe_machine(),
        commands=_commands(run, prepared.folder),
    )


def _commands(run: Path, data: Path) -> list[tuple[str, str]]:
    """Return why and how to go on, with commands that work as they stand."""
    talkconv = shlex.quote(_program())
    return [(why, line.format(talkconv=talkconv, run=run, data=data)) for why, line in COMMANDS]


def _program() -> str:
    """Return the name of the command if the shell finds it, and else its path.

    `make demo` calls it from an environment that the shell of the user does not know.
    """
    beside_python = Path(sys.executable).with_name("talkconv")
    if shutil.which("talkconv") or not beside_python.exists():
        return "talkconv"
    with contextlib.suppress(ValueError):
        return str(beside_python.relative_to(Path.cwd()))
    return str(beside_python)


def _clear(*folders: Path) -> None:
    """Remove the folders of an earlier demo. Other folders are not touched."""
    for folder in folders:
        if (folder / "data.json").exists() or (folder / "run.json").exists():
            shutil.rmtree(folder)


def _measured(console: Console) -> Speed:
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measure", total=len(LENGTHS))
        speed = measure_speed(tell=lambda: progress.advance(task))
    table = Table(box=None, pad_edge=False)
    for heading in ("tokens", *(f"{name}, ms" for name in speed.seconds)):
        table.add_column(heading, justify="right")
    for k, n in enumerate(speed.lengths):
        table.add_row(f"{n:,}", *(f"{1e3 * times[k]:.2f}" for times in speed.seconds.values()))
    console.print(table)
    return speed


def _table_of(translations: Sequence[Translation]) -> Table:
    table = Table.grid(padding=(0, 2, 1, 0))
    for one in chosen(translations, count=5, wrong=1):
        sign = "[green]✓[/]" if one.right else "[red]✗[/]"
        expected = "" if one.right else f"\n[dim]expected: {escape(one.reference)}[/]"
        table.add_row(sign, f"{escape(one.source)}\n[bold]{escape(one.output)}[/]{expected}")
    return table


def _say(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/]")


def _say_goodbye(found: Findings, page: Path, seconds: float, console: Console) -> None:
    console.print(
        f"\nThe demo took {seconds:.0f} seconds. [bold]Open {page}[/] to see what was learned: "
        "translations, windows, curve, speed.\n\n[bold]What to type next[/]",
        highlight=False,
    )
    for why, command in found.commands:
        console.print(f"  {why}\n    [bold]{escape(command)}[/]", highlight=False, soft_wrap=True)
