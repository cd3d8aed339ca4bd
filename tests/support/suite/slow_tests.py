"""The tests that take a while: a file names them, which a run with ``--note-slow`` writes.

Of these one in eight runs without ``--whole``, and of the long ones, which it marks, one in sixteen; which
ones the seed of the samples says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

SECONDS = 1.5
"""From how many on a test is slow; of its cases the slowest counts, with what it sets up."""
ONE_IN = 8
LONG_SECONDS = 10.0
"""From how many on it is long: one in nine of the slow tests."""
ONE_IN_OF_LONG = 16
_LONG = " long"


def file_of(root: Path) -> Path:
    """The file of a project's slow tests: a name in each line, and whether it is long."""
    return root / "tests" / "slow_tests.txt"


def slow_tests(root: Path) -> Mapping[str, int]:
    """A project's slow tests, by names as ``name_of`` has them: of how many like it one runs."""
    file = file_of(root)
    lines = file.read_text().splitlines() if file.exists() else ()
    return {line.removesuffix(_LONG): ONE_IN_OF_LONG if line.endswith(_LONG) else ONE_IN for line in lines}


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
        longest: dict[str, float] = defaultdict(float)
        for case, seconds in self._seconds.items():
            longest[name_of(case)] = max(longest[name_of(case)], seconds)
        slow = {name: one_in for name, one_in in slow_tests(self._root).items() if name not in longest}
        for name, seconds in longest.items():
            if seconds >= SECONDS:
                slow[name] = ONE_IN_OF_LONG if seconds >= LONG_SECONDS else ONE_IN
        _write(self._root, slow)


def _write(root: Path, slow: Mapping[str, int]) -> None:
    lines = (f"{name}{_LONG if one_in == ONE_IN_OF_LONG else ''}\n" for name, one_in in sorted(slow.items()))
    file_of(root).write_text("".join(lines))
