"""The report of preparation: what was kept and dropped, as a table, and warnings."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table

from talkconv.data.data_settings import DataSettings
from talkconv.data.prepared import Prepared

# A larger share of unknown words in a split is worth a warning.
MOST_UNKNOWN = 0.02
_BYTES = 'data.tokenizer = "bytes", which knows everything'


def print_report(prepared: Prepared, console: Console) -> None:
    """Print what preparation did; the same numbers are in data.json."""
    report = prepared.card["report"]
    console.print(_table(prepared))
    for note, times in report["notes"].items():
        console.print(f"{note}: {times:,}", highlight=False)
    _print_round_trips(prepared, console)
    words = len(prepared.tokenizer())
    console.print(f"vocabulary: {words:,} entries; {report['seconds']} s", highlight=False)
    for warning in [*unknown_warnings(prepared), *repeat_warnings(report.get("repeats", {}))]:
        console.print(
            f"warning: {warning}", style="yellow", highlight=False, markup=False, soft_wrap=True
        )


def _table(prepared: Prepared) -> Table:
    report, splits = prepared.card["report"], prepared.card["splits"]
    table = Table(title=f"{prepared.folder}: {prepared.task}", title_justify="left")
    for name in ("", "read", "kept", "dropped", "rows", "tokens", "<unk>", "cut"):
        table.add_column(name, justify="left" if name in ("", "dropped") else "right")
    for name, counts in splits.items():
        seen = report["splits"].get(name)
        why = _reasons(seen["dropped"]) if seen else f"1 of {report['valid_every']} of train"
        table.add_row(
            name,
            f"{seen['read']:,}" if seen else "",
            f"{seen['kept']:,}" if seen else "",
            why,
            f"{counts['rows']:,}",
            f"{_tokens(counts):,}",
            f"{counts['unknown'] / max(_tokens(counts), 1):.2%}",
            f"{counts.get('source_cut', 0) + counts.get('target_cut', 0):,}",
        )
    return table


def _tokens(counts: Mapping[str, int]) -> int:
    return sum(counts.get(key, 0) for key in ("source_tokens", "target_tokens", "tokens"))


def unknown_warnings(prepared: Prepared) -> Iterator[str]:
    """Yield a warning for each split with many unknown words, and what to do about them."""
    for name, counts in prepared.card["splits"].items():
        # Words that are <unk> in the raw text already do not count.
        unknown = counts["unknown"] - counts.get("given_unknown", 0)
        share = unknown / max(_tokens(counts), 1)
        if share > MOST_UNKNOWN:
            yield f"{share:.1%} of the tokens of {name} are <unk>: {_cure(prepared.settings)}"


def _cure(settings: DataSettings) -> str:
    if settings.vocabulary is not None:
        return f"lower data.min_frequency = {settings.min_frequency}, or take {_BYTES}"
    if settings.codes is not None:
        return "segment all files with the codes of data.codes"
    return (
        "set data.vocabulary, such as data.vocabulary=8000, so that rare words become subwords, "
        f"or take {_BYTES}"
    )


def repeat_warnings(repeats: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a warning for each split that repeats rows of its own or of another split."""
    for name, counts in repeats.items():
        compared = counts["compared"]
        for other, times in counts.items():
            if other == "compared" or not times:
                continue
            rows = f"{times:,} of {compared:,} rows of {name} ({times / compared:.2%})"
            if other == name:
                yield f"{rows} repeat another row of it"
            else:
                yield f"{rows} are in {other}, too: their scores say little about new text"


def _print_round_trips(prepared: Prepared, console: Console) -> None:
    """Print how many texts change when they are split into subwords and joined again."""
    changed = False
    for name, seen in prepared.card["report"]["splits"].items():
        # Folders that were prepared before this was counted have no such entry. Of a few training
        # rows, perhaps none was checked.
        found = seen.get("round_trip")
        if not found or not found["checked"]:
            continue
        changed = changed or found["changed"] > 0
        line = (
            f"round trip, {name}: {found['changed']:,} of {found['checked']:,} checked texts change"
        )
        for text, back in found["examples"][:1]:
            line += f", for example {shortened(text, back)!r} to {shortened(back, text)!r}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if changed and prepared.settings.tokenizer == "moses":
        console.print(
            "data.protected keeps whole what matches a pattern, such as a placeholder between "
            'spaces; data.tokenizer = "bytes" keeps everything, such as tags that touch words',
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def shortened(text: str, other: str, width: int = 40) -> str:
    """Return the part of a text where it begins to differ from another one.

    >>> shortened("Remove %s now", "Remove % s now", width=10)
    '...ove %s now'
    """
    first = next(
        (at for at, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), len(text)
    )
    begin = max(0, first - width // 2)
    end = first + width // 2
    return ("..." if begin else "") + text[begin:end] + ("..." if end < len(text) else "")


def _reasons(dropped: dict[str, int]) -> str:
    return "\n".join(f"{times:,} {why}" for why, times in dropped.items()) or "none"
