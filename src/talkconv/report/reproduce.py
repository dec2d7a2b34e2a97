"""`talkconv reproduce`: trains and scores every run of the plan, and writes the page.

It can be stopped at any time, and then continues where it stopped. Each run is trained in its own
process with one thread, and several processes run at once. Two runs with two threads each would
slow each other down on two cores. Several such commands may run at once, because each run and each
preparation of data is locked while a command works on it.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from talkconv.data.prepared import CARD as DATA_CARD
from talkconv.evaluation.score_report import outputs_path
from talkconv.machine import describe_machine
from talkconv.messages import did_you_mean, one_message
from talkconv.report.children import Children, Stopped
from talkconv.report.collect import is_run, summary_of
from talkconv.report.commands import (
    evaluate_command,
    prepare_command,
    train_command,
    tune_command,
)
from talkconv.report.kept_run import RUNS, read_evaluations
from talkconv.report.locks import locked
from talkconv.report.outcome import Outcome, read_outcome, write_outcome
from talkconv.report.plan import PLAN, Plan, PlannedRun, Table, read_plan
from talkconv.runs.card import RunCard
from talkconv.training.command import DIVERGED
from talkconv.training.recipe import read_recipe


@dataclass(frozen=True)
class Workshop:
    """Executes a plan in the folder `root`, which contains data/ and runs/."""

    root: Path
    raw: Path
    plan: Path
    results: Path
    children: Children = field(default_factory=Children)
    console: Console = field(default_factory=Console)
    _page: threading.Lock = field(default_factory=threading.Lock)
    # how many commands were started for each run
    _calls: Counter[str] = field(default_factory=Counter)

    def run(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / name

    def prepare(self, table: Table) -> None:
        """Prepare the data of a table, unless it exists."""
        data = self.root / "data" / table.recipe_name
        with locked(self.run(f".prepare-{data.name}.lock")) as lock:
            if lock is None:
                raise ValueError(
                    f"another process prepares {data}: call this again when it is done"
                )
            if not (data / DATA_CARD).is_file():
                self._call(prepare_command(table, self.raw), f"prepare-{data.name}", lock)

    def bring_up_to_date(self, table: Table, run: PlannedRun) -> None:
        """Train a run, choose its network and score it. Steps that were done before are skipped."""
        with locked(self.run(f".{run.name}.lock")) as lock:
            if lock is None:
                self._say(f"{run.name}: another process works on it")
                return
            before = self._calls[run.name]
            if self._train(run, lock):
                self._choose(table, run, lock)
                for split in table.splits:
                    self._evaluate(table, run, split, lock)
            changed = self._calls[run.name] > before
        if changed:
            self.report()

    def report(self, *, speed: bool = False) -> None:
        """Write the page about all existing runs. With `speed`, measure their speed first."""
        words = ["talkconv", "report", "runs", "--out", str(self.results)]
        words += ["--plan", str(self.plan), *(["--speed"] if speed else [])]
        with self._page:
            self._call(words, "report")

    def _train(self, run: PlannedRun, lock: int) -> bool:
        """Train a run to its end, and return whether it gave a usable network."""
        folder = self.run(run.name)
        begun = is_run(folder)
        if begun and summary_of(folder)["finished"]:
            return True
        if read_outcome(folder).failure:
            return False
        words = train_command(run) + (["--resume"] if begun else [])
        code = self._call(words, run.name, lock, allowed=(0, DIVERGED))
        failure = "diverges" if code == DIVERGED else None
        write_outcome(folder, Outcome(_machine(), failure))
        return failure is None

    def _choose(self, table: Table, run: PlannedRun, lock: int) -> None:
        """Choose between the best checkpoint and the mean of the last ones, on validation."""
        folder = self.run(run.name)
        outcome = read_outcome(folder)
        if table.average and outcome.chosen is None:
            self._call(tune_command(table, run), run.name, lock)
            write_outcome(folder, replace(outcome, chosen=RunCard.read(folder).model))

    def _evaluate(self, table: Table, run: PlannedRun, split: str, lock: int) -> None:
        """Score a run. If its baseline was scored since then, compare the run with it."""
        baselines = self._baselines(table, run, split)
        known = read_evaluations(self.run(run.name)).get(split)
        if known is None or (baselines is not None and not known["comparisons"]):
            words = evaluate_command(table, run, split, baselines=baselines)
            self._call(words, run.name, lock)

    def _baselines(self, table: Table, run: PlannedRun, split: str) -> str | None:
        """Return the folder of runs, as seen from `root`, that has the outputs of the baseline.

        Outputs that results/runs kept serve as well as those of a run on this machine.
        """
        baseline = table.baseline_of(run)
        if baseline is None:
            return None
        folders = [os.path.relpath(each, self.root) for each in (self.run(""), self.results / RUNS)]
        places = [outputs_path(self.root / each / baseline.name, split) for each in folders]
        return next((each for each, at in zip(folders, places, strict=True) if at.is_file()), None)

    def _call(
        self,
        words: Sequence[str],
        log: str,
        lock: int | None = None,
        allowed: Sequence[int] = (0,),
    ) -> int:
        path = self.run(f"{log}.log")
        self._calls[log] += 1
        self._say(f"{' '.join(words)}  (log: {path})")
        code = self.children.call(words, cwd=self.root, log=path, inherit=lock)
        if code not in allowed:
            raise ValueError(f"{' '.join(words)} ended with exit code {code}: see {path}")
        return code

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)


def _machine() -> dict[str, Any]:
    """Describe the machine of a training, without facts about this process."""
    machine = describe_machine()
    return {key: value for key, value in machine.items() if key not in ("threads", "command")}


def reproduce(shop: Workshop, plan: Plan, names: Sequence[str], jobs: int) -> list[str]:
    """Execute a plan, or the named runs of it. Return the errors of the failed ones."""
    tables = [table for table in plan.tables if any(run.name in names for run in table.runs())]
    errors = _all_of([partial(shop.prepare, table) for table in tables], 1, shop)
    # The second round compares the runs that were scored before their baseline.
    for _ in range(2):
        work = [
            partial(shop.bring_up_to_date, table, run)
            for table in tables
            for run in table.runs()
            if run.name in names
        ]
        errors = errors or _all_of(work, jobs, shop)
    return errors


def check_average(table: Table, run: PlannedRun) -> None:
    """Raise a ValueError if a run will not keep as many checkpoints as its table averages."""
    training = read_recipe(run.recipe, run.overrides).training
    kept = min(training.keep, -(-training.max_steps // training.save_every))
    if table.average > kept:
        raise ValueError(
            f"average = {table.average} of table {table.name!r} must be at most the number of "
            f"checkpoints that {run.name} keeps, {kept}: it saves one every {training.save_every} "
            f"of {training.max_steps} steps, and keeps the last {training.keep}"
        )


def _all_of(work: Sequence[Callable[[], None]], jobs: int, shop: Workshop) -> list[str]:
    """Do all tasks, `jobs` at a time. After Ctrl-C, the running ones save their work and end."""
    errors = []
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(piece) for piece in work]
        try:
            for future in as_completed(futures):
                error = future.exception()
                if error is not None and not isinstance(error, ValueError | OSError):
                    raise error
                errors += [] if error is None else [str(error)]
        except (KeyboardInterrupt, Stopped):
            shop.children.stop()
            pool.shutdown(cancel_futures=True)
            raise KeyboardInterrupt from None
    return errors


def reproduce_command(
    raw: Path,
    *,
    root: Path,
    results: Path,
    plan: Path | None,
    only: Sequence[str],
    jobs: int,
    speed: bool,
) -> None:
    """Run reproduce() for the command line."""
    # A batch system sends this signal to end a job.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with one_message("not reproduced", "the same command goes on from here"):
        plan = plan or results / PLAN
        found = read_plan(plan)
        known = [run.name for run in found.runs()]
        for name in only:
            if name not in known:
                raise ValueError(f"no run is called {name!r}: {did_you_mean(name, known)}")
        for table in found.tables:
            for run in table.runs():
                if run.name in (only or known):
                    check_average(table, run)
        shop = Workshop(root.resolve(), raw.resolve(), plan.resolve(), results.resolve())
        errors = reproduce(shop, found, only or known, jobs)
        if errors:
            raise ValueError("; ".join(errors))
        shop.report(speed=speed)
