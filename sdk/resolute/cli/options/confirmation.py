"""Asks for confirmation before a command does something that cannot be undone."""

from __future__ import annotations

import sys

import click


def confirm(question: str) -> None:
    """Asks a person.

    Args:
        question: What is about to happen.

    Raises:
        click.ClickException: The answer is no; the command exits with 1.
        click.UsageError: There is no terminal to answer at.
        click.Abort: Ctrl-C was pressed.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError("there is no terminal to answer at; --yes answers.") from None
    if not agreed:
        raise click.ClickException("nothing changed")
