"""The tests that take a while: a file names them, which a run with ``--note-slow`` writes.

Of these one in four runs without ``--whole``; which ones the seed of the samples says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

SECONDS = 1.5
"""From how many on a test is slow; of its cases the slowest counts, with what it sets up."""
ONE_IN = 4


def file_of(root: Path) -> Path:
    """The file of a project's slow tests: a name in each line."""
    return root / "tests" / "slow_tests.txt"


def slow_tests(root: Path) -> frozenset[str]:
    """Names of a project's slow tests, as ``name_of`` has them."""
    file = file_of(root)
    return frozenset(file.read_text().splitlines() if file.exists() else ())


def name_of(node_id: str) -> str:
    """A test without the parameters of its cases."""
    return node_id.partition("[")[0]


class SlowTestNotes:
    """Measures the tests of a run, and writes down which are slow. What it did not run stays as it was.

    Args:
        root: The project's directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seconds: dict[str, float] = defaultdict(float)
        """Of each case."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the time of one phase of a test."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Writes the file anew."""
        measured = {name_of(case) for case in self._seconds}
        slow = {name_of(case) for case, seconds in self._seconds.items() if seconds >= SECONDS}
        _write(self._root, slow | (slow_tests(self._root) - measured))


def _write(root: Path, names: Iterable[str]) -> None:
    file_of(root).write_text("".join(f"{name}\n" for name in sorted(names)))
