"""`talkconv prepare`: turns raw text into a prepared folder."""

import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from talkconv.conventions import check_task
from talkconv.data.chunks import card_of, read_json
from talkconv.data.corpora import open_corpus
from talkconv.data.corpus import Corpus, in_order
from talkconv.data.data_settings import DataSettings
from talkconv.data.prepare_report import print_report
from talkconv.data.prepared import Prepared, open_prepared, write_card
from talkconv.data.segmentation import read_codes
from talkconv.data.words import RoundTrip
from talkconv.data.worker_pool import WorkerPool
from talkconv.files import write_json
from talkconv.messages import can_redraw, one_message

if TYPE_CHECKING:
    from talkconv.data.stages import Chunks, Stages


class Recipe(Protocol):
    """The parts of a recipe that preparation needs."""

    @property
    def name(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def data(self) -> DataSettings: ...


def prepare_command(
    recipe: Recipe, raw: Path | None, out: Path | None, workers: int | None
) -> None:
    """Run prepare() for the command line and print its report."""
    console = Console()
    again = "call it again to go on; what was finished is kept"
    with one_message("not prepared", interrupted=again):
        prepared = prepare(
            recipe.task,
            recipe.data,
            raw,
            out or Path("data") / recipe.name,
            recipe=recipe.name,
            workers=workers,
            console=console,
        )
    print_report(prepared, console)


def prepare(
    task: str,
    settings: DataSettings,
    raw: Path | None,
    out: Path,
    *,
    recipe: str | None = None,
    workers: int | None = None,
    console: Console | None = None,
) -> Prepared:
    """Write the prepared folder `out`, or open it if it is prepared already.

    An error in the input leaves no files. An interruption leaves a hidden folder next to `out`,
    and the next call continues from it.
    """
    check_task(task)
    console = console or Console(quiet=True)
    corpus = open_corpus(raw, settings)
    codes = _codes(settings, raw)
    inputs = _inputs(corpus, raw, codes)
    plan = dict(task=task, settings=settings.as_dict(), inputs=inputs)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        return _done_before(out, plan, console)
    # The stages need transformers, which takes seconds to import. All refusals come before it.
    from talkconv.data.stages import Stages

    work = out.parent / f".{out.name}.preparing"
    _open_work(work, plan, console)
    started = time.monotonic()
    try:
        with WorkerPool(workers) as pool, _bars(console) as progress:
            stages = Stages(work, task, settings, pool, progress, codes)
            splits, report = _work_through(stages, corpus)
    except ValueError:
        shutil.rmtree(work)
        raise
    write_card(
        work / "whole",
        task=task,
        recipe=recipe,
        settings=settings,
        splits=splits,
        report={**report, "seconds": round(time.monotonic() - started, 1)},
        inputs=inputs,
    )
    if out.exists():
        out.rmdir()
    (work / "whole").replace(out)
    shutil.rmtree(work)
    return open_prepared(out)


def _work_through(
    stages: "Stages", corpus: Corpus
) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """Run all stages, and return the counts and the report of each split."""
    read, notes = stages.read(corpus)
    report = {name: _read_report(paths) for name, paths in read.items()}
    chunks: Chunks = {name: read[name] for name in in_order(read)}
    if corpus.valid_every is not None:
        chunks = stages.divide(chunks, corpus.valid_every)
    repeats = stages.count_repeats(chunks)
    tokenizer = stages.learn(chunks["train"])
    splits: dict[str, dict[str, int]] = {}
    for name, paths in chunks.items():
        encoded = stages.encode(name, paths, tokenizer)
        splits[name] = dict(encoded["counts"])
        if name in report:
            report[name]["dropped"].update(encoded["dropped"])
            report[name]["kept"] -= sum(encoded["dropped"].values())
        if name != "train":
            stages.write_texts(name, paths)
    for card in (stages.work / "whole").glob("*/*.json"):
        if card.parent.name in splits:
            card.unlink()
    whole = dict(splits=report, notes=notes, repeats=repeats, valid_every=corpus.valid_every)
    return splits, whole


def _read_report(paths: list[Path]) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    total: Counter[str] = Counter()
    round_trip = RoundTrip()
    for path in paths:
        card = read_json(card_of(path))
        dropped.update(card["dropped"])
        total.update(read=card["read"], kept=card["kept"])
        round_trip.add(RoundTrip(**card["round_trip"]))
    kept = dict(read=total["read"], kept=total["kept"], dropped=dropped)
    return {**kept, "round_trip": asdict(round_trip)}


def _codes(settings: DataSettings, raw: Path | None) -> Path | None:
    """Find the codes file in the folder of the raw files, or at its own path."""
    if settings.codes is None:
        return None
    beside = None if raw is None else raw / settings.codes
    path = beside if beside is not None and beside.is_file() else Path(settings.codes)
    if not path.is_file():
        where = "" if raw is None else f" in {raw} or"
        raise ValueError(f"codes = {settings.codes!r} must be a file{where} at that path")
    # Read the file now, so that an error in it appears before any work is done.
    read_codes(path)
    return path


def _inputs(corpus: Corpus, raw: Path | None, codes: Path | None) -> list[dict[str, Any]]:
    """Describe the raw files, so that a second call recognizes them."""
    inputs = [dict[str, Any](name=corpus.identity)] if corpus.identity else []
    files = [path for split in corpus.splits.values() for path in split.files]
    for path in files if codes is None else [*files, codes]:
        seen = path.stat()
        name = path.relative_to(raw) if raw and path.is_relative_to(raw) else path
        inputs.append(dict(name=str(name), size=seen.st_size, changed=seen.st_mtime_ns))
    return inputs


def _done_before(out: Path, plan: dict[str, Any], console: Console) -> Prepared:
    prepared = open_prepared(out)
    # A folder of an older version lacks newer settings; those have their defaults.
    found = {**prepared.card, "settings": prepared.settings.as_dict()}
    for key, wanted in plan.items():
        if found[key] != wanted:
            raise ValueError(
                f"{out} was prepared {_difference(key, found[key], wanted)}: give another --out, "
                f"or remove it"
            )
    console.print(f"{out} is prepared already, nothing is left to do", highlight=False)
    return prepared


def _difference(key: str, found: Any, wanted: Any) -> str:
    """Say how a part of an earlier plan differs from the one that is wanted."""
    if key == "settings":
        changed = next(name for name in wanted if found[name] != wanted[name])
        return f"with data.{changed} = {found[changed]}, not {wanted[changed]}"
    return f"for {found}, not for {wanted}" if key == "task" else "from other files"


def _open_work(work: Path, plan: dict[str, Any], console: Console) -> None:
    """Continue in a work folder that an interrupted call left, if its plan is the same."""
    record = work / "plan.json"
    if record.exists() and read_json(record) == plan:
        console.print("going on from where the last call was interrupted", highlight=False)
        # Unfinished files have hidden names.
        for unfinished in list(work.rglob(".*")):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink()
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    write_json(record, plan)


@contextlib.contextmanager
def _bars(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # In a notebook, bars cannot be redrawn, and each drawing would stay as a line.
    flooded = console.is_terminal and not can_redraw(console)
    with Progress(*columns, console=console, disable=flooded) as progress:
        yield progress
