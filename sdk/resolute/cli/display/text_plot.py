"""Curves as text, drawn with Braille patterns of eight dots a character."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BLANK = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot, row by row."""
_LABEL_WIDTH = 11


@dataclass(frozen=True)
class Size:
    """The size of a plot, in characters."""

    width: int = 72
    height: int = 16


def draw(xs: Sequence[float], ys: Sequence[float], *, size: Size) -> list[str]:
    """Draws one curve with its scales.

    Args:
        xs: Where the points are, ascending.
        ys: Their values; points that are not finite leave a gap.
        size: The size of the whole picture.

    Raises:
        ValueError: No point is finite.
    """
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
    if not points:
        raise ValueError("there is no finite value to draw")
    columns, rows = max(size.width - _LABEL_WIDTH - 2, 4), max(size.height - 2, 2)
    low, high = min(y for _, y in points), max(y for _, y in points)
    canvas = [[0] * columns for _ in range(rows)]
    horizontal, vertical = _Scale(xs[0], xs[-1], columns * 2), _Scale(low, high, rows * 4)
    before: tuple[int, int] | None = None
    for x, y in zip(xs, ys, strict=True):
        here = (horizontal.place(x), rows * 4 - 1 - vertical.place(y)) if math.isfinite(y) else None
        if here is not None:
            _line(canvas, before or here, here)
        before = here
    texts = ["".join(chr(_BLANK + cell) for cell in row) for row in canvas]
    labels = [f"{high:.4g}", *[""] * (rows - 2), f"{low:.4g}"]
    picture = [f"{label:>{_LABEL_WIDTH}} ┤{text}" for label, text in zip(labels, texts, strict=True)]
    first, last = f"{xs[0]:g}", f"{xs[-1]:g}"
    axis = " " * (_LABEL_WIDTH + 1)
    scale = f"{first}{last:>{max(columns - len(first), len(last) + 1)}}"
    return [*picture, f"{axis}└{'─' * columns}", f"{axis} {scale}"]


@dataclass(frozen=True)
class _Scale:
    """Maps values to dots."""

    low: float
    high: float
    dots: int

    def place(self, value: float) -> int:
        # Halves first: the range of two finite doubles may be infinite.
        span = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / span if span > 0 else 0.5
        return min(int(share * self.dots), self.dots - 1)


def _line(canvas: list[list[int]], start: tuple[int, int], end: tuple[int, int]) -> None:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        x = round(start[0] + (end[0] - start[0]) * step / steps)
        y = round(start[1] + (end[1] - start[1]) * step / steps)
        canvas[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
