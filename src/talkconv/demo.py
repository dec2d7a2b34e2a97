"""`talkconv demo`: what the operation does, on this machine, in half a minute.

Windows that gradient descent finds over a sentence, as a picture, and the time and memory they take
beside attention's.
"""

import functools
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

import talkconv
from talkconv.bench import baselines
from talkconv.bench.machine import describe_machine
from talkconv.bench.measure import measure, peak_memory_of

SENTENCE = "the old man who lived by the sea told us a long story about one big fish"
WORDS = SENTENCE.split()
# What each head shall sum for every word: its phrase, and its clause.
PHRASES = [(0, 3), (3, 5), (5, 8), (8, 10), (10, 13), (13, 17)]
CLAUSES = [(0, 3), (3, 8), (8, 17)]
REACH = 9


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
) -> None:
    """Show what the operation does: learned windows, and time and memory against attention."""
    torch.manual_seed(0)
    console = Console()
    left, right, loss = learn_windows()
    console.print(
        f"Learned, by gradient descent through the operation, how far each of {len(WORDS)} words "
        f"looks in 2 heads (error {loss:.1e}):"
    )
    for head, spans in enumerate((PHRASES, CLAUSES)):
        found = sum(
            window == span
            for window, span in zip(rounded(left, right, head), per_word(spans), strict=True)
        )
        console.print(f"  head {head + 1}: {found} of {len(WORDS)} windows are the ones asked for")
    picture = draw_windows(left, right, out / "windows.png")
    console.print(f"Drawn to {picture}\n")
    console.print(speed_table())
    console.print("\nNext: talkconv doctor, talkconv bench op, and README.md for your own network.")


def per_word(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The span (first, past) of every word."""
    return [span for span in spans for _ in range(*span)]


def learn_windows(steps: int = 400) -> tuple[Tensor, Tensor, float]:
    """Offsets (1, T, 2) whose windows sum what is asked for, found from the sums alone."""
    T, R = len(WORDS), 64
    # words in directions of their own, so that every sum tells which of them it holds
    words = torch.eye(T, R).repeat(1, 2)[None]
    target = torch.zeros_like(words)
    for head, spans in enumerate((PHRASES, CLAUSES)):
        channels = slice(head * R, (head + 1) * R)
        for i, (first, past) in enumerate(per_word(spans)):
            target[0, i, channels] = words[0, first:past, channels].sum(0)
    # short at first: an edge that lies outside the sentence feels no pull
    logits = torch.full((2, 1, T, 2), -2.5, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(steps):
        left, right = logits.sigmoid()
        sums = talkconv.talk_conv(words, left, right, l_max=REACH, r_max=REACH, normalize=False)
        loss = (sums - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    left, right = logits.detach().sigmoid()
    return left, right, loss.item()


def rounded(left: Tensor, right: Tensor, head: int) -> list[tuple[int, int]]:
    """The windows (first, past) of one head, to the nearest word."""
    windows = []
    for i in range(len(WORDS)):
        first = i - round(left[0, i, head].item() * REACH)
        past = i + round(right[0, i, head].item() * REACH) + 1
        windows.append((max(first, 0), min(past, len(WORDS))))
    return windows


def draw_windows(left: Tensor, right: Tensor, path: Path) -> Path:
    """Row i of each panel: how much every word weighs in the window of word i."""
    import matplotlib.pyplot as plt

    weights = talkconv.reference.window_weights(left, right, len(WORDS), l_max=REACH, r_max=REACH)
    figure, panels = plt.subplots(1, 2, figsize=(12, 6.2), sharey=True, layout="constrained")
    for head, (panel, title) in enumerate(
        zip(panels, ("head 1 was asked for phrases", "head 2 was asked for clauses"), strict=True)
    ):
        image = panel.imshow(weights[0, :, :, head], cmap="Blues", vmin=0, vmax=1)
        panel.set_xticks(range(len(WORDS)), WORDS, rotation=60, ha="right")
        panel.set_yticks(range(len(WORDS)), WORDS)
        panel.set_title(title)
        panel.set_xlabel("looks at")
        for edge in range(1, len(WORDS)):
            panel.axhline(edge - 0.5, color="white", linewidth=0.8)
            panel.axvline(edge - 0.5, color="white", linewidth=0.8)
        panel.plot(range(len(WORDS)), range(len(WORDS)), ".", color="tab:orange", markersize=5)
    panels[0].set_ylabel("word")
    figure.colorbar(image, ax=panels, label="weight in the window", shrink=0.8)
    figure.suptitle("Every word chooses how far it looks to the left and to the right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def speed_table(lengths: tuple[int, ...] = (100, 1000, 4000)) -> Table:
    """Time and peak memory of the operation and of fused attention, forward, batch 4, d = 512."""
    machine = describe_machine()
    table = Table(
        title=f"batch 4, d 512, 8 heads, {machine['processor']}, {machine['threads']} threads",
        title_justify="left",
    )
    for heading in ("tokens", "talk_conv, ms", "attention, ms", "times faster", "memory, MiB"):
        table.add_column(heading, justify="right")
    for n in lengths:
        x, offsets = torch.randn(4, n, 512), torch.rand(2, 4, n, 8)
        q, k, v = torch.randn(3, 4, 8, n, 64)
        runs = {
            "talk": functools.partial(talkconv.talk_conv, x, *offsets, l_max=31, r_max=31),
            "attention": functools.partial(baselines.fused_attention, q, k, v),
        }
        times = measure(runs, seconds=0.5)
        memory = (peak_memory_of(run) for run in runs.values())
        mebibytes = ("–" if peak is None else f"{peak / 2**20:.0f}" for peak in memory)
        table.add_row(
            f"{n:,}",
            *(f"{times[name].median * 1e3:.2f}" for name in runs),
            f"{times['attention'].median / times['talk'].median:.1f}",
            " / ".join(mebibytes),
        )
    return table
