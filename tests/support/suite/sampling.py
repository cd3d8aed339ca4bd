"""Runs a random part of what is too slow to be run whole each time.

Where no test, file or folder is named, tests that are marked ``sampled(k)`` run ``k`` of their cases; of slow
tests one in eight runs, and of long ones one in sixteen (`support.suite.slow_tests`); a test that exists for
several databases runs on one of them. Loops over ``sample.of(cases, k)`` always take ``k``. A seed, new in
each run and shown in pytest's header, decides which. ``--whole`` runs everything.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from support.suite.slow_tests import name_of, slow_tests

T = TypeVar("T")

_DATABASE = re.compile(r"(?<=[\[-])(?:sqlite|postgresql)(?=[-\]])")
"""The part of a test's name that says on which database it runs."""


@dataclass(frozen=True)
class Sample:
    """Chooses the cases that a test goes through."""

    seed: str
    whole: bool = False
    """Whether every case is chosen."""

    @property
    def number(self) -> int:
        """A number of the seed's own, for what takes one."""
        return random.Random(self.seed).randrange(1 << 31)

    def size(self, *, whole: int, part: int) -> int:
        """How much of something to do: all that proves it, or a part."""
        return whole if self.whole else part

    def of(self, population: Sequence[T], k: int) -> list[T]:
        """Returns ``k`` of a population in its own order, or all of it."""
        if self.whole or k >= len(population):
            return list(population)
        chosen = random.Random(self.seed).sample(range(len(population)), k)
        return [population[index] for index in sorted(chosen)]


def choose_items(items: list[pytest.Item], seed: str, *, slow: Mapping[str, int]) -> set[pytest.Item]:
    """Returns the tests that are left out: all that are marked ``sampled``, but for a sample of each group.

    The cases of a parametrized test are one group; so are all tests whose mark names the same group. Where it
    says ``files``, whole files of the group are chosen: their tests share what takes long to start. Of the
    others that remain and are slow a sample stays; of those that are not, each for one database.

    Args:
        items: All tests.
        seed: Decides the samples.
        slow: Names of slow tests, and of how many like it one stays.
    """
    groups: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    sizes: dict[str, int] = {}
    by_file: set[pytest.Item] = set()
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            group = mark.kwargs.get("group") or item.nodeid.partition("[")[0]
            unit = item.nodeid
            if mark.kwargs.get("files"):
                unit = item.nodeid.partition("::")[0]
                by_file.add(item)
            groups[group][unit].append(item)
            sizes[group] = mark.args[0]
    left_out: set[pytest.Item] = set()
    for group, units in groups.items():
        stays = Sample(f"{seed}/{group}").of(list(units), sizes[group])
        left_out |= {item for unit, members in units.items() if unit not in stays for item in members}
    settled = left_out | by_file
    remaining = [item for item in items if item not in settled and name_of(item.nodeid) in slow]
    choice = random.Random(f"{seed}/slow").choice
    kept: set[pytest.Item] = set()
    for one_in in sorted(set(slow.values())):
        alike = [item for item in remaining if slow[name_of(item.nodeid)] == one_in]
        # Of neighbours, which often cost alike: so all samples take about as long.
        kept |= {choice(alike[first : first + one_in]) for first in range(0, len(alike), one_in)}
    others = [item for item in items if item not in settled and name_of(item.nodeid) not in slow]
    return left_out | (set(remaining) - kept) | _on_other_databases(others, seed)


def _on_other_databases(items: list[pytest.Item], seed: str) -> set[pytest.Item]:
    """Of tests that exist for each of several databases, those for all databases but one."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name, found = _DATABASE.subn("", item.nodeid, count=1)
        if found:
            tests[name].append(item)
    choice = random.Random(f"{seed}/databases").choice
    return {item for alike in tests.values() for item in alike} - {choice(alike) for alike in tests.values()}


class SampledRun:
    """Leaves out what a sample does not have, and says at the end of the run what that was.

    Workers of xdist choose, all alike; the process that starts them reports.

    Args:
        seed: Decides the sample.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._left_out: dict[str, int] = {}
        """Numbers of tests by folder of the project."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselects what the sample leaves out."""
        left_out = choose_items(items, self._seed, slow=slow_tests(config.rootpath))
        if left_out:
            config.hook.pytest_deselected(items=[item for item in items if item in left_out])
            items[:] = [item for item in items if item not in left_out]
            self._left_out = Counter(
                "/".join(item.nodeid.partition("::")[0].split("/")[:2]) for item in left_out
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Passes the numbers on, where this is a worker."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes the numbers of a worker; one that crashed has none."""
        self._left_out = getattr(node, "workeroutput", {}).get("left_out", self._left_out)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what was left out and how to run it."""
        if self._left_out:
            folders = ", ".join(f"{folder} {count}" for folder, count in sorted(self._left_out.items()))
            terminalreporter.write_line(
                f"left out by the sample: {sum(self._left_out.values())} tests ({folders}). "
                "Tests, files and folders that are named run whole, and everything does with --whole."
            )
