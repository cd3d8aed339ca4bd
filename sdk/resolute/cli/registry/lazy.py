"""Command groups that load a command's module only when the command runs.

Help, completion and prefix matching need only the names and help lines in a table, so `resolute --help`
imports neither gRPC nor rich.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

_ALIKE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("rm", "remove", "del", "drop"), ("delete", "remove", "rm", "revoke")),
    **dict.fromkeys(("show", "get", "info", "view", "inspect"), ("describe", "list")),
    **dict.fromkeys(("stop", "abort", "terminate"), ("cancel", "kill", "down")),
    **dict.fromkeys(("add", "new", "make"), ("create", "set")),
    **dict.fromkeys(("submit", "start", "launch"), ("create", "run", "up")),
    **dict.fromkeys(("resume", "restart"), ("activate", "continue")),
}
"""Words of other programs, with the commands that may be meant."""


@dataclass(frozen=True)
class LazyCommand:
    """A command whose module is loaded on demand."""

    name: str
    help: str
    """One line for the list of commands."""
    target: str
    """``module:attribute`` of the ``click.Command``."""
    aliases: tuple[str, ...] = ()

    def load(self) -> click.Command:
        """Imports the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


def _names(entry: LazyCommand) -> str:
    return ", ".join((entry.name, *entry.aliases))


class LazyGroup(click.Group):
    """A group whose commands are listed in a table. Unambiguous prefixes of names and aliases work too.

    Args:
        entries: The commands, in the order of the help.
        counterparts: Determined's commands that do not exist here, each with its replacement. No prefix of
            one is taken for another command.
        foreign: Commands of other programs, each with the equivalent command here. They must be typed in
            full.
    """

    def __init__(
        self,
        *args: Any,
        entries: Sequence[LazyCommand] = (),
        counterparts: Mapping[str, str] | None = None,
        foreign: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._entries = tuple(entries)
        self._counterparts = dict(counterparts or {})
        self._foreign = dict(foreign or {})

    def entries(self) -> Sequence[LazyCommand]:
        """The commands, in the order of the help."""
        return self._entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names all commands."""
        return [entry.name for entry in self.entries()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads the command with this name, alias or unambiguous prefix; None if there is none."""
        matches = self._matches(cmd_name)
        return matches[0].load() if len(matches) == 1 and not self._absent(cmd_name) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command of a command line; fails with what was probably meant."""
        typed = args[0]
        if typed == "help" and "help" not in self._names():
            click.echo(ctx.get_help())
            ctx.exit()
        if typed in self._foreign and typed not in self._names():
            ctx.fail(f"There is no `{ctx.command_path} {typed}`: {self._foreign[typed]}.")
        matches, absent = self._matches(typed), self._absent(typed)
        if typed not in absent and len(matches) + len(absent) > 1:
            names = ", ".join(
                [*(entry.name for entry in matches), *(f"{word} (not here)" for word in absent)]
            )
            ctx.fail(f"{typed!r} is short for several commands: {names}.")
        if absent:
            ctx.fail(f"There is no `{ctx.command_path} {absent[0]}`: {self._counterparts[absent[0]]}.")
        if not matches and not typed.startswith("-"):
            close = [name for name in _ALIKE.get(typed, ()) if name in self.list_commands(ctx)]
            close = close or difflib.get_close_matches(typed, self.list_commands(ctx), n=3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            if typed.isdigit():
                own = self.list_commands(ctx)
                example = "describe" if "describe" in own else own[0]
                hint = f" A command comes before a number: `{ctx.command_path} {example} {typed}`."
            ctx.fail(f"There is no command {typed!r}.{hint}")
        _, command, rest = super().resolve_command(ctx, args)
        return matches[0].name if matches else None, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands without loading any."""
        self.write_section(formatter, "Commands", self.list_commands(ctx))

    def write_section(self, formatter: click.HelpFormatter, title: str, names: Sequence[str]) -> None:
        """Writes a list of those commands that there are, in the order of their names here."""
        entries = {entry.name: entry for entry in self.entries()}
        found = [entries[name] for name in names if name in entries]
        if found:
            # All sections of a help have their texts at the same column.
            width = max(len(_names(entry)) for entry in entries.values())
            rows = [(_names(entry).ljust(width), entry.help) for entry in found]
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes names of commands without loading any, and options."""
        names = [
            CompletionItem(entry.name, help=entry.help)
            for entry in self.entries()
            if entry.name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def _matches(self, typed: str) -> list[LazyCommand]:
        own = self._own(typed)
        entries = self.entries() if own is None else (own,)
        exact = [entry for entry in entries if typed in (entry.name, *entry.aliases)]
        if exact:
            return exact[:1]
        return [entry for entry in entries if any(n.startswith(typed) for n in (entry.name, *entry.aliases))]

    def _own(self, typed: str) -> LazyCommand | None:
        """Finds a command of this group's own table by its full name, without asking for others."""
        return next((entry for entry in self._entries if typed in (entry.name, *entry.aliases)), None)

    def _names(self) -> set[str]:
        return {name for entry in self.entries() for name in (entry.name, *entry.aliases)}

    def _absent(self, typed: str) -> list[str]:
        """Documented words without a command that may be meant; none if a command has exactly this name."""
        if self._own(typed) is not None or typed in self._names():
            return []
        if typed in self._counterparts:
            return [typed]
        return [word for word in self._counterparts if word.startswith(typed)]
