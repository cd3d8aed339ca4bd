"""Metrics as pictures."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Annotated

from mcp.server.mcpserver import Image
from pydantic import Field

from resolute.cli.display.terminal import neutralised
from resolute.cli.mcp.read_tools import Key
from resolute.client.schema.records import SeriesPoint
from resolute.client.services import Services
from resolute.errors import NotFoundError

_POINTS = 500


class PlotTools:
    """Tools that draw.

    Args:
        services: The cluster.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def plot_metric(
        self,
        trials: Annotated[list[Key], Field(min_length=1, max_length=20)],
        metric: str,
        group: str = "validation",
    ) -> Image:
        """Plot a metric of some trials over their steps, as a PNG image."""
        curves: dict[str, list[SeriesPoint]] = {}
        for key in trials:
            trial = self._services.trials.get(key)
            curves[f"trial {trial.id}"] = self._services.metrics.series(
                trial.uuid, group=group, name=metric, max_points=_POINTS
            )
        if not any(curves.values()):
            raise NotFoundError(
                f"none of these trials has reported {group}.{metric}; list_metrics lists metrics"
            )
        return Image(data=draw(curves, title=f"{group}.{metric}"), format="png")


def draw(curves: Mapping[str, Sequence[SeriesPoint]], *, title: str) -> bytes:
    """Draws curves into a PNG file.

    Args:
        curves: Points, by the labels of their curves.
        title: Stands above.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for label, points in curves.items():
        marker = "o" if len(points) == 1 else None  # a line through one point is invisible
        axes.plot([p.steps for p in points], [p.value for p in points], label=label, marker=marker)
    # A dollar sign in a metric's name must not begin a formula.
    axes.set_title(neutralised(title)[:200], parse_math=False)
    axes.set_xlabel("steps")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()
