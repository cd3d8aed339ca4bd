"""The notation of experiments, trials and checkpoints on the command line."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from resolute.cli.options import completions

if TYPE_CHECKING:
    _KeyType = click.ParamType[str]
    _KeysType = click.ParamType[tuple[str, ...]]
else:  # generic only in newer releases of click
    _KeyType = _KeysType = click.ParamType

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Key(_KeyType):
    """The number or UUID of one object.

    Args:
        noun: The kind of object with its article, for messages.
        numbered: Whether such objects have numbers.
        prefix: A prefix that the UUID may have.
        known: The shell completion.
        listed_by: The command that lists such objects.
    """

    name = "id"

    def __init__(
        self,
        noun: str,
        *,
        numbered: bool = True,
        prefix: str = "",
        known: completions.Completer | None = None,
        listed_by: str,
    ) -> None:
        self.noun = noun
        self._listed_by = listed_by
        self._known = known
        self._numbered = numbered
        self._prefix = prefix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the form; whether there is such an object, the service knows."""
        text = str(value).strip()
        if self._numbered and text.isascii() and text.isdigit() and 0 < int(text) < 2**63:
            return text
        try:
            return str(uuid.UUID(text.removeprefix(self._prefix)))
        except ValueError:
            kind = "the number or UUID" if self._numbered else "the UUID"
            self.fail(f"{text!r} is not {kind} of {self.noun}; `{self._listed_by}` lists them.", param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Says where it stands what may be named."""
        return f"`{self._listed_by}` lists what there is."

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offers the newest that there are."""
        return [] if self._known is None else self._known(ctx, param, incomplete)


class Keys(_KeysType):
    """A comma-separated list of numbers or UUIDs of one kind of object.

    Args:
        each: The type of each element.
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
            self.fail(f"name {self._each.noun}, or several separated by commas or spaces.", param, ctx)
        return tuple(dict.fromkeys(self._each.convert(part, param, ctx) for part in parts))

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Says where it stands what may be named."""
        return self._each.get_missing_message(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offers what the last of them may be."""
        before, comma, last = incomplete.rpartition(",")
        found = self._each.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in found]


def keys_argument(
    name: str, *, metavar: str, type_: Keys, required: bool = True
) -> Callable[[_Command], _Command]:
    """Adds an argument for one or several objects, which commas or spaces separate.

    Args:
        name: Name of the parameter, which gets a tuple; an optional one gets None if nothing is given.
        metavar: How help names it.
        type_: The form of the objects.
        required: Whether at least one must be given.
    """

    def flatten(
        _: click.Context, __: click.Parameter, given: tuple[tuple[str, ...], ...]
    ) -> tuple[str, ...] | None:
        return tuple(dict.fromkeys(key for keys in given for key in keys)) or None

    return click.argument(name, metavar=metavar, type=type_, nargs=-1, required=required, callback=flatten)


EXPERIMENT = Key("an experiment", known=completions.experiments, listed_by="resolute experiment list")
EXPERIMENTS = Keys(EXPERIMENT)
# Its prefix is as $DET_TASK_ID has it.
TRIAL = Key("a trial", prefix="trial-", known=completions.trials, listed_by="resolute trial list")
TRIALS = Keys(TRIAL)
CHECKPOINT = Key("a checkpoint", numbered=False, listed_by="resolute checkpoint list")
CHECKPOINTS = Keys(CHECKPOINT)
