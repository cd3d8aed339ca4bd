"""Runs a random part of what is too slow to be run whole each time.

Without ``--whole``, tests that are marked ``sampled(k)`` run ``k`` of their cases, and so do loops over
``sample.of(cases, k)``; of slow tests one in four runs (`support.slow_tests`). Which ones depends on a seed
that is new in each run and stands in pytest's header.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest
from support.slow_tests import ONE_IN, name_of

T = TypeVar("T")


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


def choose_items(items: list[pytest.Item], seed: str, *, slow: Collection[str] = ()) -> set[pytest.Item]:
    """Returns the tests that are left out: all that are marked ``sampled``, but for a sample of each group.

    The cases of a parametrized test are one group; so are all tests whose mark names the same group. Of those
    that remain and are slow a sample stays.

    Args:
        items: All tests.
        seed: Decides the samples.
        slow: Names of slow tests.
    """
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            group = mark.kwargs.get("group") or item.nodeid.partition("[")[0]
            groups[group].append(item)
            sizes[group] = mark.args[0]
    left_out: set[pytest.Item] = set()
    for group, members in groups.items():
        left_out |= set(members) - set(Sample(f"{seed}/{group}").of(members, sizes[group]))
    remaining = [item for item in items if item not in left_out and name_of(item.nodeid) in slow]
    stays = Sample(f"{seed}/slow").of(remaining, math.ceil(len(remaining) / ONE_IN))
    return left_out | (set(remaining) - set(stays))
