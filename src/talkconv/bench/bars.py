"""Bars: the limits that measured numbers must reach."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Bar:
    """One requirement on a measured number: at least, or at most, a limit."""

    what: str
    found: float
    limit: float
    at_least: bool

    @property
    def is_met(self) -> bool:
        """Return whether the number reaches the bar.

        >>> Bar("times fused attention at n = 10", 6.8, 5, at_least=True).is_met
        True
        """
        return self.found >= self.limit if self.at_least else self.found <= self.limit

    @property
    def verdict(self) -> str:
        """Return "met" or "not met"."""
        return "met" if self.is_met else "not met"

    @property
    def required(self) -> str:
        """Return the limit in words.

        >>> Bar("error", 1e-7, 2e-6, at_least=False).required
        'at most 2e-06'
        """
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}"


def bars_table(bars: Iterable[Bar]) -> Table:
    """Return the bars as a table for the terminal."""
    table = Table(title="Bars", title_justify="left")
    table.add_column("")
    for heading in ("required", "found", ""):
        table.add_column(heading, justify="right")
    for bar in bars:
        style = "" if bar.is_met else "bold red"
        table.add_row(bar.what, bar.required, f"{bar.found:.3g}", bar.verdict, style=style)
    return table


def plain_bars(bars: Iterable[Bar]) -> list[dict[str, Any]]:
    """Return bars as values that JSON can hold."""
    return [{**asdict(bar), "verdict": bar.verdict} for bar in bars]
