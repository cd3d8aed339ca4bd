"""The question before a command does something that cannot be undone."""

from __future__ import annotations

import click


def confirm(question: str) -> None:
    """Asks a person.

    Args:
        question: What is about to happen.

    Raises:
        click.ClickException: The answer is no; the command exits with 1.
        click.Abort: Ctrl-C was pressed, or there is no terminal to answer at.
    """
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing changed")
