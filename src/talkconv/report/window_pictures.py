"""Draws windows: their mean reach in every layer and head, and all windows over one sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from talkconv.report.drawing import new_figure, save, style
from talkconv.report.looks import Layer, Look, Side
from talkconv.report.window_statistics import LayerReach, WindowStatistics

# Heads differ in lightness. The lightest one is still visible on white.
_HEADS = ("#08306b", "#2f7ebc", "#d1701f", "#f2b56b")
_TOKEN = "#000000"


def draw_reach(statistics: WindowStatistics, path: Path) -> None:
    """Draw the mean reach of each head to the left and right, layer by layer."""
    sides = {"encoder": statistics["encoder"], "decoder": statistics["decoder"]}
    shown = {name: layers for name, layers in sides.items() if layers}
    rows = max(sum(len(layer["left"]) + 1 for layer in layers) for layers in shown.values())
    figure = new_figure(5.6 * len(shown), max(3.2, 0.24 * rows + 1.2))
    with style():
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for panel, (name, layers) in zip(panels, shown.items(), strict=True):
            _draw_layers(panel, layers)
            panel.set_title(name if len(shown) > 1 else "mean reach of the windows")
            both = any(layer["r_max"] for layer in layers)
            panel.set_xlabel(f"tokens to the left{' and right' if both else ''} of a token")
        save(figure, path)


def _draw_layers(panel: Any, layers: Sequence[LayerReach]) -> None:
    row, centres = 0, []
    for layer in layers:
        heads = len(layer["left"])
        for head in range(heads):
            colour = _HEADS[head % len(_HEADS)]
            panel.barh(row + head, -layer["left"][head], height=0.8, color=colour)
            panel.barh(row + head, layer["right"][head], height=0.8, color=colour)
        # the greatest reach that the layer allows
        ends = [-layer["l_max"], layer["r_max"]] if layer["r_max"] else [-layer["l_max"]]
        panel.vlines(ends, row - 0.5, row + heads - 0.5, color="#888888", linestyles="--", lw=1)
        centres.append(row + (heads - 1) / 2)
        row += heads + 1
    panel.axvline(0, color=_TOKEN, lw=1)
    panel.set_yticks(centres, [f"layer {number}" for number in range(1, len(layers) + 1)])
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(row - 1, -1)
    panel.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")


def draw_sentence(look: Look, path: Path) -> None:
    """Draw every window over a sentence and over its translation, layer by layer."""
    sides = [side for side in (look["encoder"], look["decoder"]) if side["layers"]]
    columns = max(len(side["layers"]) for side in sides)
    heights = [_height(side) for side in sides]
    figure = new_figure(4.2 * columns + 0.8, sum(heights) + 0.6)
    with style():
        grid = figure.subplots(
            len(sides), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        names = ("encoder", "decoder")
        for name, side, panels in zip(names, sides, grid, strict=False):
            for panel in panels[len(side["layers"]) :]:
                panel.set_axis_off()
            _draw_side(panels, side, name)
        save(figure, path)


def draw_talk(look: Look, path: Path) -> None:
    """Draw the encoder's windows over one sentence, as a slide would show them."""
    side = look["encoder"]
    figure = new_figure(4.2 * len(side["layers"]) + 0.8, _height(side) + 0.9)
    with style():
        panels = figure.subplots(1, len(side["layers"]), squeeze=False)[0]
        _draw_side(panels, side, "")
        figure.suptitle("Every token chooses how far it looks: one line for each head", fontsize=16)
        save(figure, path)


def _height(side: Side) -> float:
    return 0.34 * len(side["tokens"]) + 1.3


def _draw_side(panels: Sequence[Any], side: Side, name: str) -> None:
    words = [token.strip() for token in side["tokens"]]
    for number, (panel, layer) in enumerate(zip(panels, side["layers"], strict=False), start=1):
        _draw_windows(panel, layer)
        reach = f"up to {layer['l_max']} to the left"
        reach += f" and {layer['r_max']} to the right" if layer["r_max"] else ""
        panel.set_title(f"{name} layer {number}\n{reach}".strip(), fontsize=12)
        panel.set_xticks(range(len(words)), words, rotation=90, fontsize=11)
        panel.set_yticks(range(len(words)), words if number == 1 else [""] * len(words))
        panel.tick_params(length=0)
        panel.set_xlim(-0.6, len(words) - 0.4)
        panel.set_ylim(len(words) - 0.4, -0.6)
        panel.grid(axis="x", color="#e6e6e6", linewidth=0.8)
        panel.set_axisbelow(True)
        for row in range(0, len(words), 2):
            panel.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", zorder=0)


def _draw_windows(panel: Any, layer: Layer) -> None:
    heads, tokens = len(layer["left"]), len(layer["left"][0])
    for head in range(heads):
        # the lines of a token's heads lie one below the other, in 0.7 of its row
        shift = 0.0 if heads == 1 else 0.7 * (head / (heads - 1) - 0.5)
        for token in range(tokens):
            begin = max(token - layer["left"][head][token], -0.5)
            end = min(token + layer["right"][head][token], tokens - 0.5)
            panel.plot(
                [begin, end],
                [token + shift] * 2,
                color=_HEADS[head % len(_HEADS)],
                linewidth=2.6,
                solid_capstyle="butt",
            )
    panel.plot(range(tokens), range(tokens), "o", color=_TOKEN, markersize=4)
