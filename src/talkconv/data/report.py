"""What preparation kept and dropped, and why, as a table."""

from rich.console import Console
from rich.table import Table

from talkconv.data.prepared import Prepared


def print_report(prepared: Prepared, console: Console) -> None:
    """The closing report; the same numbers stand in data.json."""
    report, splits = prepared.card["report"], prepared.card["splits"]
    table = Table(title=f"{prepared.folder}: {prepared.task}", title_justify="left")
    for name in ("", "read", "kept", "dropped", "rows", "tokens", "<unk>", "cut"):
        table.add_column(name, justify="left" if name in ("", "dropped") else "right")
    for name, counts in splits.items():
        seen = report["splits"].get(name)
        why = _reasons(seen["dropped"]) if seen else f"1 of {report['valid_every']} of train"
        tokens = sum(counts.get(key, 0) for key in ("source_tokens", "target_tokens", "tokens"))
        table.add_row(
            name,
            f"{seen['read']:,}" if seen else "",
            f"{seen['kept']:,}" if seen else "",
            why,
            f"{counts['rows']:,}",
            f"{tokens:,}",
            f"{counts['unknown'] / max(tokens, 1):.2%}",
            f"{counts.get('source_cut', 0) + counts.get('target_cut', 0):,}",
        )
    console.print(table)
    for note, times in report["notes"].items():
        console.print(f"{note}: {times:,}", highlight=False)
    _print_round_trips(prepared, console)
    words = len(prepared.tokenizer())
    console.print(f"vocabulary: {words:,} entries; {report['seconds']} s", highlight=False)


def _print_round_trips(prepared: Prepared, console: Console) -> None:
    """Say how many texts do not come back from their subwords as they were."""
    changed = False
    for name, seen in prepared.card["report"]["splits"].items():
        # Folders that were prepared before this was counted have no such entry.
        found = seen.get("round_trip")
        if not found:
            continue
        changed = changed or found["changed"] > 0
        line = f"round trip, {name}: {found['changed']:,} of {found['checked']:,} texts change"
        for text, back in found["examples"][:1]:
            line += f", for example {shortened(text, back)!r} to {shortened(back, text)!r}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if changed and prepared.settings.tokenizer == "moses":
        console.print(
            "data.protected keeps whole what matches a pattern, such as a placeholder; "
            'data.tokenizer = "bytes" keeps everything',
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
