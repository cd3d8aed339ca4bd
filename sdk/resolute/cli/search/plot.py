"""Plots a simulated search: the trials on each rung, and the learning curve of each trial."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import click

from resolute.client.remote.searches import SimulatedRung, SimulationResult
from resolute.contracts.distribution import install_command

_FORMATS = (".png", ".svg")
_MOST_LINES = 2000


def require(path: Path) -> None:
    """Checks that a picture can be drawn, before anything takes long.

    Raises:
        click.ClickException: The file has another suffix, or matplotlib is absent.
    """
    if path.suffix.lower() not in _FORMATS:
        raise click.ClickException(f"{path}: a plot can be a .png or a .svg file.")
    if importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException(f"Plots need matplotlib; install it with: {install_command('plot')}")


def draw(result: SimulationResult, path: Path, *, name: str, metric: str, units: str) -> None:
    """Draws a simulated search into a file.

    Args:
        result: The simulation.
        path: The file; its suffix tells the format.
        name: Name of the search method.
        metric: Name of the metric.
        units: What lengths are counted in.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    rungs, times = figure.subplots(1, 2)
    _draw_rungs(rungs, result.rungs, units=units)
    _draw_trials(times, result, units=units, metric=metric)
    figure.suptitle(f"{name}: {len(result.trials)} trials, {result.total_units} {units}")
    figure.savefig(path, dpi=150)


def _draw_rungs(axes: Any, rungs: tuple[SimulatedRung, ...], *, units: str) -> None:
    lengths = sorted({rung.length for rung in rungs})
    brackets = sorted({rung.bracket for rung in rungs})
    width = 0.8 / max(len(brackets), 1)
    for position, bracket in enumerate(brackets):
        reached = {rung.length: rung.reached for rung in rungs if rung.bracket == bracket}
        places = [lengths.index(length) + position * width - 0.4 + width / 2 for length in reached]
        bars = axes.bar(places, list(reached.values()), width, label=f"bracket {bracket + 1}")
        axes.bar_label(bars, fontsize=7)
    axes.set_xticks(range(len(lengths)), [str(length) for length in lengths])
    axes.set_yscale("log")
    axes.set_xlabel(f"rung: trained to ({units})")
    axes.set_ylabel("trials that reached it")
    if len(brackets) > 1:
        axes.legend()


def _draw_trials(axes: Any, result: SimulationResult, *, units: str, metric: str) -> None:
    from matplotlib.collections import LineCollection

    step = max(1, math.ceil(len(result.trials) / _MOST_LINES))
    shown = result.trials[::step]
    lines = LineCollection(
        [[(trial.start, number * step), (trial.end, number * step)] for number, trial in enumerate(shown)],
        array=[trial.length for trial in shown],
        cmap="viridis",
    )
    axes.add_collection(lines)
    axes.set_xlim(0, result.duration * 1.02 or 1)
    axes.set_ylim(-1, len(result.trials))
    axes.set_xlabel(f"virtual time ({units})")
    axes.set_ylabel("trial, in order of creation")
    axes.figure.colorbar(lines, ax=axes, label=f"trained to ({units}); decided by {metric}")
