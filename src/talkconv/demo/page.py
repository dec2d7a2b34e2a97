"""Writes one HTML page about the results of the demo. The page loads no other files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from talkconv.demo.charts import Axis, Line, chart, nice_ticks, powers_of_ten
from talkconv.demo.speed import ATTENTION, DYNAMIC, OURS, SETTING, Speed
from talkconv.demo.translations import Translation, chosen, marked
from talkconv.files import write_text
from talkconv.report.looks import Look
from talkconv.serving.page import STYLE, WINDOWS, explorer_html, page_text

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Findings:
    """The results of the demo, which the page shows."""

    bleu: float
    # all unseen sentences
    translations: Sequence[Translation]
    # lines of the run's log: step and loss, or step and valid_bleu
    log: Sequence[dict[str, Any]]
    sentences: Sequence[Look]
    speed: Speed
    parameters: int
    pairs: int
    seconds: float
    # the result of describe_machine()
    machine: dict[str, Any]
    # the commands to type next: (reason, command)
    commands: Sequence[tuple[str, str]]


def write_page(found: Findings, path: Path) -> None:
    """Write the page about the results of the demo."""
    write_text(path, page(found))


def page(found: Findings) -> str:
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        style=page_text(STYLE),
        script=page_text(WINDOWS) + (FOLDER / "page.js").read_text(encoding="utf-8"),
        explorer=explorer_html("Encoder reads German", "Decoder writes English"),
        data=_json({"sentences": list(found.sentences)}),
        date=found.machine["date"],
        lead=_lead(found),
        facts=_facts(found),
        mistakes=_mistakes(found),
        translations="\n".join(map(_item, chosen(found.translations))),
        curve=_curve(found),
        curve_text=_curve_text(found),
        speed=_speed_chart(found.speed),
        speed_text=_speed_text(found.speed),
        speed_note=escape(f"Medians of interleaved runs; {SETTING}. Both axes are logarithmic."),
        commands="\n".join(
            f"<div><dt>{escape(why)}</dt><dd><code>{escape(command)}</code></dd></div>"
            for why, command in found.commands
        ),
        machine=escape(
            "{processor}, {threads} threads, {system}; kernel {kernel}; talkconv {talkconv}, "
            "torch {torch}, Python {python}.".format(**found.machine)
        ),
    )


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _lead(found: Findings) -> str:
    return (
        f"In {found.seconds:.0f} seconds on this machine, a network of Time-aware Large Kernel "
        f"convolutions has learned to translate simple German into English, from "
        f"{found.pairs:,} pairs of sentences that a grammar made. It has no self-attention: "
        "each token decides how far it looks to each side."
    )


def _facts(found: Findings) -> str:
    right = sum(one.right for one in found.translations) / len(found.translations)
    facts = [
        (f"{found.bleu:.1f}", "BLEU on unseen sentences"),
        (f"{100 * right:.0f} %", "of translations equal to the reference"),
        (f"{found.seconds:.0f} s", "training"),
        (f"{found.parameters / 1e6:.2f} M", "parameters"),
    ]
    return "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for value, name in facts)


def _mistakes(found: Findings) -> str:
    wrong = sum(not one.right for one in found.translations)
    if not wrong:
        return f"All {len(found.translations)} are equal to the reference."
    return (
        f"Of {len(found.translations)}, {wrong} differ from the reference. Some of those are "
        "shown, with the different words <mark>marked</mark>."
    )


def _item(one: Translation) -> str:
    output, reference = marked(one.output, one.reference)
    source = f'<p class="source" lang="de">{escape(one.source)}</p>'
    if one.right:
        status = '<p class="status">equal to the reference</p>'
    else:
        status = f'<p class="status"><b>reference</b> {reference}</p>'
    return f'<li>{source}<p class="output">{output}</p>{status}</li>'


def _curve(found: Findings) -> str:
    losses, scores = _logged(found, "loss"), _logged(found, "valid_bleu")
    # a training of a few steps may have logged neither a loss nor a score
    last = max((step for step, _ in [*losses, *scores]), default=1)
    steps = Axis("steps", 0, last, nice_ticks(0, last)[:-1], lambda step: f"{step:,.0f}")
    charts = []
    if losses:
        ticks = nice_ticks(0, max(loss for _, loss in losses))
        axis = Axis("training loss", 0, ticks[-1], ticks)
        charts.append(chart(steps, axis, [Line("loss", "talk", losses)], "Loss over steps"))
    if scores:
        axis = Axis("BLEU on validation sentences", 0, 100, [0, 20, 40, 60, 80, 100])
        line = Line("BLEU", "talk", [(0, 0), *scores])
        charts.append(chart(steps, axis, [line], "Validation BLEU over steps"))
    return "\n".join(charts)


def _logged(found: Findings, name: str) -> list[tuple[float, float]]:
    """Return (step, value) of each line of the log that has the value `name`."""
    return [(line["step"], line[name]) for line in found.log if name in line]


def _curve_text(found: Findings) -> str:
    losses = _logged(found, "loss")
    fell = f"; it fell from {losses[0][1]:.1f} to {losses[-1][1]:.2f}" if losses else ""
    return (
        f"The loss is lower if the network predicts the next tokens better{fell}. BLEU compares "
        "whole translations with their references: 100 means that they are equal."
    )


def _speed_chart(speed: Speed) -> str:
    lengths = speed.lengths
    milliseconds = {name: [1e3 * one for one in times] for name, times in speed.seconds.items()}
    every = [one for times in milliseconds.values() for one in times]
    ticks = powers_of_ten(min(every), max(every))
    kinds = {OURS: "talk", ATTENTION: "attention", DYNAMIC: "dynamic"}
    return chart(
        Axis("tokens in the sequence", lengths[0], lengths[-1], lengths, "{:,}".format, log=True),
        Axis("milliseconds", ticks[0], ticks[-1], ticks, "{:,g}".format, log=True),
        [
            Line(name, kinds[name], list(zip(lengths, times, strict=True)))
            for name, times in milliseconds.items()
        ],
        "Milliseconds over tokens for TaLK, attention and DynamicConv",
    )


def _speed_text(speed: Speed) -> str:
    return (
        f"The time of one layer for {speed.lengths[0]} to {speed.lengths[-1]:,} tokens, measured "
        "just now. The sum over a window is the difference of two running sums, so the time grows "
        "with the number of tokens and not with the windows. Attention compares every token with "
        f"every other. At {speed.lengths[-1]:,} tokens attention takes "
        f"{speed.ratio(ATTENTION):.1f} times as long, and a DynamicConv with kernels of the same "
        f"width takes {speed.ratio(DYNAMIC):.1f} times as long."
    )
