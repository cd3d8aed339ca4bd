"""Commands from entry points, of other distributions or of other parts of this one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

import click

from resolute.cli.registry.lazy import LazyCommand
from resolute.contracts.distribution import install_command

GROUP = "resolute.commands"
"""Entry points of this group are commands of `resolute`."""

_OWN_HELP = {
    "demo": "Show all of it: a cluster, a search on real data, the best model.",
    "up": "Start a cluster on this machine.",
    "down": "Stop the cluster of this machine.",
    "status": "Show the cluster of this machine and the use of its slots.",
    "backup": "Back up the cluster of this machine, even while it runs.",
    "restore": "Restore a backup into a new home.",
    "adopt-copy": "Make a copied or moved home a cluster of its own.",
    "take-over": "Let a restored or copied cluster remove checkpoints of its original.",
    "rotate-key": "Sign tokens with a new key, even while the cluster runs.",
    "db": "Manage the databases of the services.",
    "doctor": "Diagnose problems of the cluster of this machine.",
}

OF_THIS_MACHINE = frozenset(_OWN_HELP)
"""Commands about the cluster in the home, whatever address is given."""


@dataclass(frozen=True)
class PluginCommand(LazyCommand):
    """A command that an entry point names."""

    entry_point: EntryPoint | None = None

    def load(self) -> click.Command:
        """Imports the command.

        Raises:
            click.ClickException: What it needs is not installed, or it is no command.
        """
        assert self.entry_point is not None
        try:
            command = self.entry_point.load()
        except ModuleNotFoundError as error:
            if self.name in _OWN_HELP:
                raise click.ClickException(
                    f"`resolute {self.name}` needs the services, which are not installed here ({error}); "
                    f"install them with: {install_command('server')}"
                ) from error
            raise click.ClickException(f"the command {self.name} cannot be loaded: {error}") from error
        if not isinstance(command, click.Command):
            raise click.ClickException(f"{self.target}, the command {self.name}, is not a click command")
        return command


@lru_cache(maxsize=1)
def plugin_commands() -> tuple[PluginCommand, ...]:
    """Lists the commands of all installed distributions, our own first."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    order = [name for name in _OWN_HELP if name in points]
    order += sorted(points.keys() - _OWN_HELP.keys())
    return tuple(_command(points[name]) for name in order)


def _command(point: EntryPoint) -> PluginCommand:
    text = _OWN_HELP.get(point.name, f"From {point.dist.name if point.dist else point.value}.")
    return PluginCommand(point.name, text, point.value, entry_point=point)
