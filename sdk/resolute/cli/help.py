"""``resolute help``: explains commands and the reasons of errors."""

from __future__ import annotations

import click

from resolute.cli.registry.error_reasons import ERROR_REASONS
from resolute.cli.registry.lazy import LazyGroup


@click.command(name="help")
@click.argument("words", metavar="[COMMAND...|errors [REASON]]", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a command, or the reason of an error: `resolute help errors NOT_FOUND`."""
    assert ctx.parent is not None
    if words[:1] == ("errors",):
        _explain_errors(words[1:])
    else:
        click.echo(_context_of(ctx.parent, list(words)).get_help())


def _explain_errors(names: tuple[str, ...]) -> None:
    if not names:
        for name, reason in ERROR_REASONS.items():
            click.echo(f"{name}\n  {reason.meaning}")
        return
    for name in names:
        explanation = ERROR_REASONS.get(name.upper())
        if explanation is None:
            raise click.UsageError(
                f"There is no error reason {name!r}; the reasons are {', '.join(ERROR_REASONS)}."
            )
        click.echo(f"{name.upper()}\n\n{explanation.meaning}\n\n{explanation.remedy}")


def _context_of(ctx: click.Context, words: list[str]) -> click.Context:
    while words:
        group = ctx.command
        if not isinstance(group, LazyGroup):
            raise click.UsageError(f"`{ctx.command_path}` has no commands.", ctx)
        name, command, words = group.resolve_command(ctx, words)
        assert command is not None
        ctx = click.Context(command, info_name=name, parent=ctx)
    return ctx
