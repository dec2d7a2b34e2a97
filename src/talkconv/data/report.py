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
    words = len(prepared.tokenizer())
    console.print(f"vocabulary: {words:,} entries; {report['seconds']} s", highlight=False)


def _reasons(dropped: dict[str, int]) -> str:
    return "\n".join(f"{times:,} {why}" for why, times in dropped.items()) or "none"
