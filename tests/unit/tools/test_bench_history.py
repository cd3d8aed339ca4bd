"""Figures of benchmarks are kept night by night, and a step of a tenth is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import history


@dataclass
class Result:
    """What `run.py` keeps of a benchmark."""

    output: list[str]
    name: str = "scale/calls"
    date: str = "2026-11-29"
    machine: str = "2 cores"
    load_before: float = 0.1
    passed: bool = True
    versions: dict[str, str] = field(default_factory=dict)


def night(ratio: float) -> Result:
    return Result([f"read   0.79 ms of processor  {ratio:.2f} x an empty call of 0.39 ms   (limit 2.5)"])


def test_ratios_and_times_of_processors_are_figures() -> None:
    found = history.figures(
        [*night(2.01).output, "whole 100 trials in 19.1 s of processor time, 3 s of waiting"]
    )
    assert sorted(found.values()) == [0.79, 2.01, 19.1]


def test_a_step_of_a_tenth_is_named(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for _ in range(3):
        assert history.keep(file, night(2.0)) == []
    assert history.keep(file, night(2.1)) == []
    (step,) = history.keep(file, night(2.3))
    assert step.startswith("step: read")
    assert "2 for 4 nights, now 2.3 (+15%)" in step
    assert len(file.read_text().splitlines()) == 5


def test_nights_of_another_machine_are_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for _ in range(3):
        history.keep(file, night(2.0))
    other = night(3.0)
    other.machine = "64 cores"
    assert history.keep(file, other) == []
