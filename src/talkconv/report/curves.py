"""Learning curves: the validation score of all rows of a table, over tokens and over time."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from talkconv.report.drawing import STYLES, new_figure, save, style
from talkconv.report.kept_run import KeptRun

# Longer labels would cover the curves, so that their legend stands beside the panels, wrapped.
_SHORT, _WRAPPED = 40, 34
_AXES = {"bleu": "BLEU", "rouge": "ROUGE", "perplexity": "perplexity"}


class Curve(NamedTuple):
    """The runs of one row, which share a line style."""

    label: str
    runs: Sequence[KeptRun]


def draw_curves(curves: Sequence[Curve], path: Path) -> bool:
    """Write a picture of all curves as PATH.svg and PATH.png. Return False if there are none.

    Time is computed from the speed, which is measured separately. The panel of time is left out if
    the speed of any run was not measured.
    """
    drawn = [curve for curve in curves if any(run.curve() for run in curve.runs)]
    if not drawn:
        return False
    timed = all(_tokens_per_second(curve) for curve in drawn)
    beside = any(len(curve.label) > _SHORT for curve in drawn)
    labels = [fill(curve.label, _WRAPPED) if beside else curve.label for curve in drawn]
    figure = new_figure((11 if timed else 6.5) + 4 * beside, 4.6)
    with style():
        panels = figure.subplots(1, 2 if timed else 1, sharey=True, squeeze=False)[0]
        for index, (curve, label) in enumerate(zip(drawn, labels, strict=True)):
            _draw(curve, label, panels, STYLES[index % len(STYLES)])
        metric = next(run.metric for curve in drawn for run in curve.runs if run.curve())
        _label(panels, metric)
        if beside:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
        else:
            best = "upper right" if metric == "perplexity" else "lower right"
            panels[-1].legend(loc=best, frameon=False)
        save(figure, path)
    return True


def _draw(curve: Curve, name: str, panels: Any, look: dict[str, Any]) -> None:
    label: str | None = name
    for run in curve.runs:
        points = run.curve()
        values = [point.value for point in points]
        scales = [1e6, (_tokens_per_second(curve) or 0) * 60]
        for panel, scale in zip(panels, scales, strict=False):
            panel.plot([point.tokens / scale for point in points], values, label=label, **look)
        # one entry in the legend for all seeds
        label = None


def _tokens_per_second(curve: Curve) -> float | None:
    """Return the measured speed of a row; seeds do not change it."""
    speeds = [run.speed.get("training_tokens_per_second") for run in curve.runs]
    return next((float(speed) for speed in speeds if speed), None)


def _label(panels: Any, metric: str) -> None:
    names = ["target tokens of training, in millions", "minutes of training on one core"]
    for panel, name in zip(panels, names, strict=False):
        panel.set_xlabel(name)
        panel.set_xlim(left=0)
        panel.grid(axis="y", color="#dddddd", linewidth=0.8)
    panels[0].set_ylabel(f"{_AXES[metric]} on the validation set")
    if metric == "perplexity":
        panels[0].set_yscale("log")
        panels[0].yaxis.set_major_formatter("{x:.0f}")
        panels[0].yaxis.set_minor_formatter("{x:.0f}")
    else:
        panels[0].set_ylim(bottom=0)
