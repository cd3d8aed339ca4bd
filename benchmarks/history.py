"""Figures of every night, so that a step of a tenth is seen: ``run.py --history FILE`` keeps them.

A line of the file is a benchmark of one night: its date, its machine, its load, and the figures that it
printed. A figure is a number with a unit that depends least on what else the machine does: a ratio
(``1.19x``, ``2.0 x``) or a time of processors. The text of its line without numbers names it.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

STEP = 0.1
"""A figure that moved by more is named."""
_NIGHTS = 7
"""A figure is compared with the median of so many nights before, on the same kind of machine."""
_FEWEST = 3
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
_FIGURE = re.compile(rf"({_NUMBER})\s?(x\b|% of a core|(?:m?s|us) of (?:the )?processors?)")


def figures(output: Sequence[str]) -> dict[str, float]:
    """Returns the figures in what a benchmark printed, by what they are of."""
    found: dict[str, float] = {}
    for line in output:
        name = " ".join(re.sub(_NUMBER, "#", line).split())
        for number, (value, unit) in enumerate(_FIGURE.findall(line), start=1):
            found[f"{name} [{number}: {unit}]"] = float(value.replace(",", ""))
    return found


def keep(file: Path, result: Any) -> list[str]:
    """Appends a night's figures of one benchmark to a file.

    Args:
        file: The history; made if it is not there.
        result: What `run.py` kept of the benchmark.

    Returns:
        A line for each figure that stands away from those of the nights before.
    """
    entry = {
        "name": result.name,
        "date": result.date,
        "machine": result.machine,
        "load": result.load_before,
        "passed": result.passed,
        "figures": figures(result.output),
    }
    before = [
        kept
        for kept in map(json.loads, file.read_text().splitlines() if file.exists() else ())
        if kept["name"] == entry["name"] and _kind(kept["machine"]) == _kind(entry["machine"])
    ]
    with file.open("a") as lines:
        lines.write(json.dumps(entry) + "\n")
    return list(steps(entry["figures"], [kept["figures"] for kept in before[-_NIGHTS:]]))


def _kind(machine: str) -> str:
    """A machine without its kernel."""
    return machine.partition(", Linux")[0]


def steps(now: dict[str, float], before: Sequence[dict[str, float]]) -> Iterator[str]:
    """Yields what moved by more than a tenth since the nights before."""
    for name, value in now.items():
        past = [night[name] for night in before if name in night]
        if len(past) < _FEWEST:
            continue
        usual = statistics.median(past)
        if usual and abs(value / usual - 1) > STEP:
            yield f"step: {name}: {usual:g} for {len(past)} nights, now {value:g} ({value / usual - 1:+.0%})"
