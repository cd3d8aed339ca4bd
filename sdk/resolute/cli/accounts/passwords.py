"""Reads passwords from a prompt or a pipe: other users of the machine can read a command line."""

from __future__ import annotations

import getpass
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def password_option(command: CommandT) -> CommandT:
    """Adds ``--password-stdin``, which the command gets as ``piped``."""
    return click.option(
        "--password-stdin", "piped", is_flag=True, help="Read the password from standard input."
    )(command)


def ask(prompt: str, *, piped: bool, confirm: bool = False) -> str:
    """Reads a password.

    Args:
        prompt: What a person is asked.
        piped: Read a line of standard input instead of asking.
        confirm: Ask twice, for a new one.

    Raises:
        click.UsageError: There is no terminal to ask at.
    """
    if piped:
        return sys.stdin.readline().rstrip("\r\n")
    return hidden(
        prompt, instead="--password-stdin reads it from standard input", confirmation_prompt=confirm, err=True
    )


def hidden(prompt: str, *, instead: str, **options: Any) -> str:
    """Asks for a password at the terminal, which does not show it.

    Args:
        prompt: What a person is asked.
        instead: What to do without a terminal.
        **options: More for ``click.prompt``.

    Raises:
        click.UsageError: There is no terminal to ask at.
    """
    try:
        with warnings.catch_warnings():
            # getpass would warn, and then show what is typed.
            warnings.simplefilter("error", getpass.GetPassWarning)
            answer: str = click.prompt(prompt, hide_input=True, **options)
    except getpass.GetPassWarning:
        raise click.UsageError(f"there is no terminal to ask for the password at; {instead}.") from None
    return answer
