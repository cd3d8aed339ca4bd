"""Warnings of commands about problems of the cluster, such as a full disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import click

from resolute.client.services import Services
from resolute.contracts.clock import Clock
from resolute.errors import ResoluteError

_EVERY_SECONDS = 3.0


def warn_of_problems(services: Services) -> None:
    """Writes the problems of the cluster to standard error."""
    # What was asked for is shown whether or not this is known.
    with suppress(ResoluteError):
        for problem in services.cluster.get().problems:
            click.echo(f"warning: {problem}", err=True)


class ProblemWatch:
    """Shows problems of the cluster when they begin and end, for long-running commands.

    Args:
        services: The cluster.
        show: Called with each line to show.
        clock: Clock for the interval between two questions to the cluster.
    """

    def __init__(self, services: Services, *, show: Callable[[str], None], clock: Clock) -> None:
        self._services = services
        self._show = show
        self._clock = clock
        self._asked_at = float("-inf")
        self._known: tuple[str, ...] = ()

    def look(self) -> None:
        """Asks the cluster, unless it was asked lately, and shows what has changed."""
        now = self._clock.monotonic()
        if now - self._asked_at < _EVERY_SECONDS:
            return
        self._asked_at = now
        with suppress(ResoluteError):
            problems = self._services.cluster.get().problems
            # The numbers in a text change all the time; that there is a problem does not.
            if len(problems) > len(self._known):
                for problem in problems:
                    self._show(f"warning: {problem}")
            elif self._known and not problems:
                self._show("the cluster works again: its problems are over")
            self._known = problems
