"""Encodes figures: those of Matplotlib as PNG, those of Plotly as JSON."""

from __future__ import annotations

import io
from typing import Any


def figure_content(figure: Any) -> bytes:
    """Returns a figure as bytes.

    Args:
        figure: A figure of Matplotlib, or what has one, such as its axes; or a figure of Plotly.

    Raises:
        TypeError: It is none of these.
    """
    if hasattr(figure, "to_plotly_json") and hasattr(figure, "to_json"):
        return str(figure.to_json()).encode()
    figure = getattr(figure, "figure", figure)
    if not hasattr(figure, "savefig"):
        raise TypeError(f"it is a {type(figure).__name__}; a figure of Matplotlib or Plotly was expected")
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()
