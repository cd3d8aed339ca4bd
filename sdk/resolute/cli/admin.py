"""``resolute admin``: commands that few people need."""

from __future__ import annotations

from typing import Any

import click

from resolute.cli.registry.lazy import LazyGroup
from resolute.cli.registry.sections import ADMIN


@click.command(
    name="admin",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", metavar="[COMMAND [ARGS]...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def admin(ctx: click.Context, words: tuple[str, ...]) -> Any:
    """Commands for operators: machines, databases, policies. They work without the word `admin` too."""
    root = ctx.find_root()
    assert isinstance(root.command, LazyGroup)
    if not words or words[0] in {"-h", "--help", "help"}:
        formatter = ctx.make_formatter()
        ctx.command.format_help(ctx, formatter)
        root.command.write_section(formatter, "Commands", ADMIN)
        click.echo(formatter.getvalue().rstrip("\n"))
        return 0
    name, command, rest = root.command.resolve_command(root, list(words))
    assert command is not None
    with command.make_context(name, rest, parent=root) as below:
        return command.invoke(below)
