"""What the trials of the harness wrote down themselves, see ``search/train.py``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Point: TypeAlias = tuple[str, int]
"""Group and steps of a report."""


@dataclass
class RunJournal:
    """One run of one trial."""

    trial_id: str
    run: int
    processes: int = 0
    """Processes that executed it; more than one means that it was started twice."""
    begun: Counter[Point] = field(default_factory=Counter)
    """Reports that were about to be made."""
    made: Counter[Point] = field(default_factory=Counter)
    """Reports whose call returned."""
    printed: list[str] = field(default_factory=list)
    """Lines whose print returned."""
    stored: dict[str, int] = field(default_factory=dict)
    """Steps by checkpoint, of those whose call returned."""


def read_journals(folder: Path) -> dict[tuple[str, int], RunJournal]:
    """Reads all journals by trial and run."""
    found: dict[tuple[str, int], RunJournal] = {}
    for path in sorted(folder.iterdir()):
        trial_id, run, _ = path.name.rsplit(".", 2)
        key = (trial_id, int(run))
        journal = found.setdefault(key, RunJournal(*key))
        journal.processes += 1
        for words in _lines(path):
            _take(journal, words)
    return found


def _lines(path: Path) -> Iterator[list[str | int]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


def _take(journal: RunJournal, words: list[str | int]) -> None:
    kind, *rest = words
    if kind == "reporting":
        journal.begun[str(rest[0]), int(rest[1])] += 1
    elif kind == "reported":
        journal.made[str(rest[0]), int(rest[1])] += 1
    elif kind == "printed":
        journal.printed.append(str(rest[0]))
    elif kind == "stored":
        journal.stored[str(rest[0])] = int(rest[1])
