"""Reads passwords from a prompt or a pipe: other users of the machine can read a command line."""

from __future__ import annotations

import sys
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
    try:
        answer: str = click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            "there is no terminal to ask for the password at; --password-stdin reads it from standard input."
        ) from None
    return answer
