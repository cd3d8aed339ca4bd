"""What the ``entrypoint`` of a config runs."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resolute.errors import InvalidArgumentError

HARNESS = "resolute_launch.harness"
"""Runs a Trial class."""
_TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]*:[a-zA-Z0-9_.]+")


@dataclass(frozen=True, slots=True)
class Command:
    """What is to be run."""

    argv: tuple[str, ...]
    """Program and arguments."""


def plan(entrypoint: Any, *, python: str) -> Command:
    """Decides what an entrypoint runs.

    Args:
        entrypoint: A list is run as it is; text is run by a shell, unless it is ``module:Class``, which names
            a Trial class.
        python: Interpreter for Trial classes.

    Raises:
        InvalidArgumentError: It is missing or empty, or it names a Trial class where none can be run.
    """
    if isinstance(entrypoint, str) and entrypoint.strip():
        text = entrypoint.strip()
        return _trial_class(text, python) if is_trial_class(text) else Command(("sh", "-c", entrypoint))
    if isinstance(entrypoint, Sequence) and not isinstance(entrypoint, str) and entrypoint:
        return Command(tuple(str(word) for word in entrypoint))
    raise InvalidArgumentError(
        f"the config's entrypoint is {entrypoint!r}; give a command as text or as a list, "
        "such as 'python3 train.py'"
    )


def is_trial_class(entrypoint: str) -> bool:
    """Whether a text is the form ``module:Class``: one word of names and dots with one colon."""
    return _TRIAL_CLASS.fullmatch(entrypoint) is not None


def _trial_class(entrypoint: str, python: str) -> Command:
    if importlib.util.find_spec(HARNESS) is None:
        raise InvalidArgumentError(
            f"the entrypoint {entrypoint!r} names a Trial class, and Trial classes need resolute.pytorch, "
            "which this release does not have; write a script for the Core API and run it with 'python3 FILE'"
        )
    return Command((python, "-m", HARNESS, entrypoint))
