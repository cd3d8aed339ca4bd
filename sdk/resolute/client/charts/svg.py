"""Line charts as SVG documents, which any browser shows and which contain no scripts."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from resolute.client.charts.axes import Axis

_WIDTH, _PLOT_HEIGHT = 720.0, 300.0
_LEFT, _RIGHT, _TOP, _FOOT = 64.0, 12.0, 32.0, 40.0
_ROW, _LETTER, _MAX_KEYS = 18.0, 6.6, 60
# Safe for colour-blind readers; beyond them the lines are dashed.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d1f", "#6a51a3")
_DASHES = ("", "6 3", "2 2", "8 3 2 3")


@dataclass(frozen=True)
class Line:
    """The points of one trial."""

    label: str
    points: tuple[tuple[float, float], ...]
    """Steps and values, by steps; values that are no finite numbers leave gaps."""


def svg(title: str, lines: Sequence[Line], *, log: bool) -> str:
    """Draws lines.

    Args:
        title: What stands above them.
        lines: The lines.
        log: Whether the axis of values is logarithmic: values that are not above zero leave gaps.
    """
    pieces = [_pieces(line, log=log) for line in lines]
    points = [point for line in pieces for piece in line for point in piece]
    x = Axis.around([at for at, _ in points], log=False, start=_LEFT, end=_WIDTH - _RIGHT)
    y = Axis.around([value for _, value in points], log=log, start=_TOP + _PLOT_HEIGHT, end=_TOP)
    keys, keys_height = _legend(lines)
    height = _TOP + _PLOT_HEIGHT + _FOOT + keys_height
    body = [
        _text(8, 20, title, anchor="start", bold=True),
        *_grid(x, y),
        *(shape for at, line in enumerate(pieces) for shape in _drawn(at, lines[at].label, line, x=x, y=y)),
        *keys,
    ]
    if not points:
        body.append(_text(_WIDTH / 2, _TOP + _PLOT_HEIGHT / 2, "No points", anchor="middle"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'width="{_WIDTH:.0f}" '
        'style="max-width:100%;height:auto" role="img" font-family="system-ui, sans-serif" font-size="11">'
    )
    return "\n".join([head, f"<title>{html.escape(title)}</title>", *body, "</svg>\n"])


def _pieces(line: Line, *, log: bool) -> list[list[tuple[float, float]]]:
    """The stretches of a line between its gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at, value in line.points:
        if math.isfinite(value) and not (log and value <= 0):
            pieces[-1].append((at, value))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _drawn(at: int, label: str, pieces: list[list[tuple[float, float]]], *, x: Axis, y: Axis) -> list[str]:
    color, dash = _mark(at)
    shapes = []
    for piece in pieces:
        places = [(x.place(step), y.place(value)) for step, value in piece]
        if len(places) == 1:
            shapes.append(f'<circle cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2.5" fill="{color}"/>')
            continue
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in places)
        shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"{dash}>'
            f"<title>{html.escape(label)}</title></polyline>"
        )
    return shapes


def _grid(x: Axis, y: Axis) -> list[str]:
    bottom = _TOP + _PLOT_HEIGHT
    shapes = [_text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 34, "Steps", anchor="middle")]
    for value, text in x.ticks(6):
        shapes += [_rule(x.place(value), _TOP, x.place(value), bottom)]
        shapes.append(_text(x.place(value), bottom + 16, text, anchor="middle"))
    for value, text in y.ticks(5):
        shapes += [_rule(_LEFT, y.place(value), _WIDTH - _RIGHT, y.place(value))]
        shapes.append(_text(_LEFT - 6, y.place(value) + 4, text, anchor="end"))
    return shapes


def _legend(lines: Sequence[Line]) -> tuple[list[str], float]:
    """The lines' names in rows below the chart, and the height of those."""
    top = _TOP + _PLOT_HEIGHT + _FOOT
    across, down, shapes = 8.0, _ROW, []
    labels = [line.label for line in lines[:_MAX_KEYS]]
    if len(lines) > _MAX_KEYS:
        labels.append(f"{len(lines) - _MAX_KEYS} more")
    for at, label in enumerate(labels):
        length = 38 + len(label) * _LETTER
        if across > 8 and across + length > _WIDTH:
            across, down = 8.0, down + _ROW
        color, dash = _mark(at) if at < _MAX_KEYS else ("none", "")
        y = top + down
        shapes.append(f'<path d="M{across:.1f},{y - 4:.1f}h16" stroke="{color}" stroke-width="2"{dash}/>')
        shapes.append(_text(across + 22, y, label, anchor="start"))
        across += length
    return shapes, down + 8 if labels else 0.0


def _mark(at: int) -> tuple[str, str]:
    dash = _DASHES[at // len(_COLORS) % len(_DASHES)]
    return _COLORS[at % len(_COLORS)], f' stroke-dasharray="{dash}"' if dash else ""


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}" stroke="currentColor" stroke-opacity="0.15"/>'


def _text(x: float, y: float, text: str, *, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor"{weight}>{html.escape(text)}</text>'
