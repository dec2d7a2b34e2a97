"""The list of results: the tables, and the runs of each row.

It is one TOML file, results/plan.toml in this repository.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from talkconv.messages import did_you_mean
from talkconv.training.recipe import read_toml
from talkconv.training.typed import settings_from

PLAN = "plan.toml"

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Published:
    """A row with a score that others have published."""

    label: str
    score: float
    parameters: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a table: a network that is trained with one seed or with several."""

    # the last part of the names of its runs
    name: str
    label: str
    # changes to the recipe, as on the command line
    overrides: Sequence[str] = ()
    seeds: Sequence[int] = (1,)
    # the paper's score of such a network, on the paper's data
    paper: str = ""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a row, and the settings to train it."""

    name: str
    recipe: str
    overrides: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Runs of one recipe that are compared with each other."""

    # the name of its note and pictures
    name: str
    title: str
    # the recipe's name, or the path of its TOML file
    recipe: str
    # the name of the score that is compared, as `talkconv evaluate` calls it
    score: str
    rows: Sequence[Row]
    # the folder of raw text below the one that `talkconv reproduce` is given
    raw: str = ""
    splits: Sequence[str] = ("test",)
    # other scores, each with its own column
    also: Sequence[str] = ()
    # whether a lower score is better
    lower_is_better: bool = False
    # changes to the recipe for all rows
    overrides: Sequence[str] = ()
    # the mean of so many last checkpoints is used if it is better on validation; 0 means never
    average: int = 0
    # the length penalties that are tried on validation, together with that mean
    length_penalties: Sequence[float] = (1.0,)
    # the row whose outputs the others are compared with, by paired bootstrap
    baseline: str | None = None
    # whether the page has a picture of the learning curves of all rows
    curves: bool = True
    published: Sequence[Published] = ()

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if self.baseline is not None and self.baseline not in names:
            raise ValueError(f"baseline must be one of {names}, got {self.baseline!r}")
        if not self.splits:
            raise ValueError("splits must name at least one split, got none")

    @property
    def recipe_name(self) -> str:
        """Return the name of the recipe, which its data folder has too."""
        return Path(self.recipe).stem

    def runs_of(self, row: Row) -> list[PlannedRun]:
        """Return a run for each seed of a row."""
        return [
            PlannedRun(
                f"{self.recipe_name}-{row.name}" + ("" if seed == 1 else f"-seed{seed}"),
                self.recipe,
                [*self.overrides, *row.overrides]
                + ([] if seed == 1 else [f"training.seed={seed}"]),
            )
            for seed in row.seeds
        ]

    def runs(self) -> list[PlannedRun]:
        """Return the runs of all rows, in their order."""
        return [run for row in self.rows for run in self.runs_of(row)]

    def baseline_of(self, run: PlannedRun) -> PlannedRun | None:
        """Return the run whose outputs those of `run` are compared with.

        It is the first one of the baseline's row. The other seeds of that row have none.
        """
        rows = [row for row in self.rows if row.name == self.baseline]
        runs = self.runs_of(rows[0]) if rows else []
        return None if not runs or run in runs else runs[0]


@dataclass(frozen=True)
class Windows:
    """A TaLK run whose windows are shown."""

    # the name of the run
    run: str
    label: str
    # sentences whose windows are drawn in full
    sentences: Sequence[str] = ()


@dataclass(frozen=True)
class Plan:
    """All tables of the page, in their order."""

    title: str
    tables: Sequence[Table]
    windows: Sequence[Windows] = ()

    def __post_init__(self) -> None:
        names = [run.name for run in self.runs()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"every run must have a name of its own, got {twice[0]!r} twice")
        for each in self.windows:
            if each.run not in names:
                hint = did_you_mean(each.run, names)
                raise ValueError(f"no run is called {each.run!r}: {hint}")

    def runs(self) -> Iterator[PlannedRun]:
        """Yield the runs of all tables."""
        for table in self.tables:
            yield from table.runs()

    def table_of(self, run: str) -> Table:
        """Return the table that has this run."""
        return next(table for table in self.tables if run in [each.name for each in table.runs()])


def read_plan(path: Path) -> Plan:
    """Read a plan. A ValueError names what is wrong in it."""
    if not path.is_file():
        raise ValueError(f"{path} must be the list of runs, but does not exist: --plan FILE")
    sections = read_toml(path)
    try:
        parts = {
            "tables": [_table(values) for values in sections.pop("table", [])],
            "windows": [_part(Windows, values) for values in sections.pop("windows", [])],
        }
        return _part(Plan, {**sections, **parts})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _table(values: Mapping[str, Any]) -> Table:
    rest = {key: value for key, value in values.items() if key not in ("row", "published")}
    parts = {
        "rows": [_part(Row, row) for row in values.get("row", [])],
        "published": [_part(Published, row) for row in values.get("published", [])],
    }
    return _part(Table, {**rest, **parts})


def _part(kind: type[_Part], values: Mapping[str, Any]) -> _Part:
    return settings_from(kind, kind.__name__.lower(), values, file="a plan")
