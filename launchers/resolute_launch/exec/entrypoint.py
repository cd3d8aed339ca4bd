"""The command of a config's ``entrypoint``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resolute.errors import InvalidArgumentError

HARNESS = "resolute_launch.harness"
"""Runs a Trial class."""
AUTOHOROVOD = "resolute_launch.autohorovod"
"""Launches the workers of an entrypoint that names no launcher."""
_TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]*:[a-zA-Z0-9_.]+")


@dataclass(frozen=True, slots=True)
class Command:
    """The command to run."""

    argv: tuple[str, ...]
    """Program and arguments."""


def plan(entrypoint: Any, *, python: str, distributed: bool = False) -> Command:
    """Decides what an entrypoint runs.

    Args:
        entrypoint: A list is run as it is; text is run by a shell, unless it is ``module:Class``, which names
            a Trial class.
        python: Interpreter for Trial classes.
        distributed: Whether the run has several slots, so that a Trial class needs a launcher around it.

    Raises:
        InvalidArgumentError: It is missing or empty.
    """
    if isinstance(entrypoint, str) and entrypoint.strip():
        text = entrypoint.strip()
        if is_trial_class(text):
            return _trial_class(text, python, distributed=distributed)
        return Command(("sh", "-c", entrypoint))
    if isinstance(entrypoint, Sequence) and not isinstance(entrypoint, str) and entrypoint:
        return Command(tuple(str(word) for word in entrypoint))
    raise InvalidArgumentError(
        f"the config's entrypoint is {entrypoint!r}; give a command as text or as a list, "
        "such as 'python3 train.py'"
    )


def is_trial_class(entrypoint: str) -> bool:
    """Whether a text is the form ``module:Class``: one word of names and dots with one colon."""
    return _TRIAL_CLASS.fullmatch(entrypoint) is not None


def _trial_class(entrypoint: str, python: str, *, distributed: bool) -> Command:
    if distributed:
        return Command((python, "-m", AUTOHOROVOD, "--trial", entrypoint))
    return Command((python, "-m", HARNESS, entrypoint))
