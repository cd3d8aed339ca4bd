"""Runs one attack in a directory of its own, which is left after a failure, and says what came of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from faults.harness.tally import Tally


class Judged(Protocol):
    """What an attack saw; its text says so in one line."""

    @property
    def tally(self) -> Tally:
        """What was counted, and what must not be."""


def in_new_home(attack: Callable[[Path], Judged], *, name: str, engine: str) -> list[str] | None:
    """Runs an attack and prints what it saw.

    Args:
        attack: Takes an empty directory.
        name: Begins the name of the directory.
        engine: Where trials run.

    Returns:
        What must not be; None where the engine is not installed.
    """
    home = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    try:
        outcome = attack(home)
    except pytest.skip.Exception as absent:
        print(f"absent: {engine}; {absent}", flush=True)
        return None
    print(outcome, flush=True)
    if outcome.tally.violations:
        print(f"  look into {home}", flush=True)
    else:
        shutil.rmtree(home, ignore_errors=True)
    return outcome.tally.violations
