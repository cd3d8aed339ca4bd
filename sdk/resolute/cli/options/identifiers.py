"""How experiments, trials and checkpoints are named on the command line."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _KeyType = click.ParamType[str]
    _KeysType = click.ParamType[tuple[str, ...]]
else:  # generic only in newer releases of click
    _KeyType = _KeysType = click.ParamType


class Key(_KeyType):
    """The number or UUID of one object.

    Args:
        noun: What it names, for messages.
        numbered: Whether such objects have numbers.
    """

    name = "id"

    def __init__(self, noun: str, *, numbered: bool = True) -> None:
        self.noun = noun
        self._numbered = numbered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the form; whether there is such an object, the service knows."""
        text = str(value).strip()
        if self._numbered and text.isascii() and text.isdigit() and 0 < int(text) < 2**63:
            return text
        try:
            return str(uuid.UUID(text))
        except ValueError:
            kind = "the number or UUID" if self._numbered else "the UUID"
            self.fail(f"{text!r} is not {kind} of {self.noun}.", param, ctx)


class Keys(_KeysType):
    """Several objects of one kind, separated by commas.

    Args:
        each: The form of each.
    """

    name = "ids"

    def __init__(self, each: Key) -> None:
        self._each = each

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Checks the form of each; repeated ones count once."""
        if isinstance(value, tuple):
            return value
        parts = [part for part in str(value).split(",") if part.strip()]
        if not parts:
            self.fail(f"name {self._each.noun}, or several separated by commas.", param, ctx)
        return tuple(dict.fromkeys(self._each.convert(part, param, ctx) for part in parts))


EXPERIMENT = Key("an experiment")
EXPERIMENTS = Keys(EXPERIMENT)
TRIAL = Key("a trial")
TRIALS = Keys(TRIAL)
CHECKPOINT = Key("a checkpoint", numbered=False)
CHECKPOINTS = Keys(CHECKPOINT)
