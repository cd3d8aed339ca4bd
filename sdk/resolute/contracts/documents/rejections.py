"""Errors of validators, and the conversion of pydantic's errors to faults."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sized
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from resolute.contracts.documents.faults import Fault, describe, dotted

_REJECTED = "rejected"
_TELLING = 4
"""Shortest part of a name that tells which one was meant."""
_HIDDEN = "a value that is not shown"

_EXPECTED: Mapping[str, str] = {
    "int_type": "an integer",
    "string_type": "text (numbers and dates need quotes)",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "greater_than": "a number greater than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "literal_error": "one of {expected}",
    "string_too_short": "text that is not empty",
    "too_short": "a list that is not empty",
}
_YAML_1_1_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Hidden:
    """The placeholder in errors for a value that must not be shown."""


def reject(
    expected: str, *, problem: str = "", hint: str = "", incomplete: bool = False
) -> PydanticCustomError:
    """Make the error that a validator raises.

    Args:
        expected: What would be right; may be empty when ``problem`` says it all.
        problem: What is wrong; by default ``found <value>``.
        hint: What to do about it.
        incomplete: Whether a lower layer might still give what is missing.
    """
    context = {"expected": expected, "problem": problem, "hint": hint, "incomplete": incomplete}
    return PydanticCustomError(_REJECTED, "rejected", context)


def located_error(
    location: tuple[str | int, ...], value: Any, error: PydanticCustomError
) -> InitErrorDetails:
    """Put an error of ``reject`` at a location below the validator that found it."""
    return InitErrorDetails(type=error, loc=location, input=value)


def combined_error(details: Iterable[InitErrorDetails]) -> ValidationError:
    """Make one exception of several errors; pydantic puts each below the running validator's location."""
    return ValidationError.from_exception_data("config", list(details))


def to_init_error(error: ErrorDetails, *, hidden: bool = False) -> InitErrorDetails:
    """Make of a collected error one that can be raised again, perhaps without the value that it shows."""
    kind: str | PydanticCustomError = error["type"]
    context = error.get("ctx", {})
    if kind == _REJECTED:
        kind = PydanticCustomError(_REJECTED, "rejected", context)
    value = Hidden() if hidden else error["input"]
    return InitErrorDetails(type=kind, loc=error["loc"], input=value, ctx=context)


_MOST_SUGGESTIONS = 100


def nameable(strangers: Sized, known: Iterable[str]) -> Iterable[str]:
    """Gives the known names among which those nearest to unknown fields of a map are looked for.

    There are none for many unknown fields: looking takes long, and so many are more than a
    typing error.

    Args:
        strangers: The unknown fields.
        known: The known ones.
    """
    return known if len(strangers) <= _MOST_SUGGESTIONS else ()


def unknown(name: str, known: Iterable[str], *, advice: str = "") -> PydanticCustomError:
    """The error for a field that does not exist, with the nearest one that does."""
    return reject("", problem="unknown field", hint=advice or suggestion(name, known))


def suggestion(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest known name, or nothing."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    nearest = nearest or [longer for longer in names if len(name) >= _TELLING and name in longer]
    return f"did you mean '{nearest[0]}'?" if nearest else ""


def faults_of(error: ValidationError, *, source: str = "") -> list[Fault]:
    """Translate what pydantic collected into faults, in order and without repetitions."""
    faults = (_fault(detail, source) for detail in error.errors(include_url=False))
    return list(dict.fromkeys(faults))


def _fault(detail: ErrorDetails, source: str) -> Fault:
    path = dotted(detail["loc"])
    context = detail.get("ctx", {})
    if detail["type"] == _REJECTED:
        problem = context["problem"] or _found(detail["input"])
        incomplete = context["incomplete"] and _may_be_merged_in(detail["loc"])
        return Fault(path, problem, context["expected"], context["hint"], source, incomplete)
    if detail["type"] == "missing":
        return Fault(path, "missing", source=source, incomplete=_may_be_merged_in(detail["loc"]))
    template = _EXPECTED.get(detail["type"])
    expected = template.format(**context) if template else detail["msg"]
    hint = ""
    if detail["type"] == "bool_type" and isinstance(detail["input"], str):
        word = _YAML_1_1_BOOLEANS.get(detail["input"].lower())
        hint = f"write {word}" if word else ""
    return Fault(path, _found(detail["input"]), expected, hint, source)


def _found(value: Any) -> str:
    return f"found {_HIDDEN if isinstance(value, Hidden) else describe(value)}"


def _may_be_merged_in(location: tuple[str | int, ...]) -> bool:
    """Items of lists and hyperparameters are never merged: what they lack no other layer can add."""
    return not any(isinstance(step, int) for step in location) and location[:1] != ("hyperparameters",)
