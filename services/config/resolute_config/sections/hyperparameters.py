"""The ``hyperparameters`` section: constants, and ranges from which a search samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import InitErrorDetails

from resolute.contracts.documents.rejections import (
    combined_error,
    located_error,
    reject,
    suggestion,
    to_init_error,
)
from resolute.contracts.documents.section import Int, Json, Number, Positive, Section


class Const(Section):
    """The same value for every trial.

    Attributes:
        val: The value, which may be of any type, including null.
    """

    null_is_value: ClassVar[frozenset[str]] = frozenset({"val"})

    type: Literal["const"] = "const"
    val: Json = Field(description="the value")


def _above_minval(maxval: float, info: ValidationInfo) -> float:
    minval = info.data.get("minval")
    if minval is not None and minval >= maxval:
        raise reject(f"more than minval ({minval})")
    if minval is not None and not math.isfinite(float(maxval) - minval):
        raise reject(f"a finite distance from minval ({minval})")
    return maxval


class IntRange(Section):
    """A whole number from ``minval`` to ``maxval``, including both.

    Attributes:
        minval: Smallest value.
        maxval: Largest value.
        count: Number of points on a grid.
    """

    type: Literal["int"] = "int"
    minval: Int = Field(description="the smallest value, an integer")
    maxval: Int = Field(description="the largest value, an integer")
    count: Positive | None = None

    _ordered = field_validator("maxval")(_above_minval)

    @field_validator("minval", "maxval", mode="before")
    @classmethod
    def _has_no_fraction(cls, bound: Any) -> Any:
        if isinstance(bound, float) and not bound.is_integer():
            raise reject("an integer, because type is int; type: double takes fractions")
        return bound


class DoubleRange(Section):
    """A number from ``minval`` up to ``maxval``.

    Attributes:
        minval: Smallest value.
        maxval: Upper bound, not included.
        count: Number of points on a grid.
    """

    type: Literal["double"] = "double"
    minval: Number = Field(description="the smallest value, a number")
    maxval: Number = Field(description="the largest value, a number")
    count: Positive | None = None

    _ordered = field_validator("maxval")(_above_minval)


class LogRange(Section):
    """``base`` to the power of a number from ``minval`` to ``maxval``.

    Attributes:
        base: Base of the power.
        minval: Smallest exponent.
        maxval: Largest exponent.
        count: Number of points on a grid.
    """

    type: Literal["log"] = "log"
    base: Number = Field(description="the base of the power, more than 0")
    minval: Number = Field(description="the smallest exponent, a number")
    maxval: Number = Field(description="the largest exponent, a number")
    count: Positive | None = None

    _ordered = field_validator("maxval")(_above_minval)

    @field_validator("base")
    @classmethod
    def _base_is_positive(cls, base: float) -> float:
        if base <= 0:
            raise reject("a number greater than 0")
        return base

    @field_validator("minval", "maxval")
    @classmethod
    def _power_is_finite(cls, exponent: float, info: ValidationInfo) -> float:
        base = info.data.get("base")
        if base is not None and not _is_finite_power(base, exponent):
            raise reject(f"an exponent for which {base} to its power is a finite number")
        return exponent


def _is_finite_power(base: float, exponent: float) -> bool:
    try:
        return math.isfinite(math.pow(base, exponent))
    except OverflowError:
        return False


class Categorical(Section):
    """One of the listed values.

    Attributes:
        vals: The values, of any kind.
    """

    type: Literal["categorical"] = "categorical"
    vals: tuple[Json, ...] = Field(min_length=1, description="the list of values, at least one")


Leaf: TypeAlias = Const | IntRange | DoubleRange | LogRange | Categorical
Hyperparameter: TypeAlias = "Leaf | Mapping[str, Hyperparameter]"

KINDS: Mapping[str, type[Section]] = {
    "const": Const,
    "int": IntRange,
    "double": DoubleRange,
    "log": LogRange,
    "categorical": Categorical,
}


_ALIKE = 0.75
_FIELDS_OF_RANGES = frozenset({"minval", "maxval", "vals"})
_CONSTANTS = "if these are hyperparameters of their own, write each as {type: const, val: …}"


def is_typed(data: Any) -> bool:
    """Whether a value is one hyperparameter with a type, and not a map of hyperparameters or a bare constant.

    A map under ``type`` is a hyperparameter that happens to be called "type".
    """
    return isinstance(data, Mapping) and "type" in data and not isinstance(data["type"], (Mapping, Section))


def _parse_group(data: Any) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise reject("a map of hyperparameters")
    parsed: dict[str, Any] = {}
    details: list[InitErrorDetails] = []
    for name, value in data.items():
        if not name:
            details.append(located_error((), name, reject("", problem="a hyperparameter has an empty name")))
            continue
        try:
            parsed[name] = _parse(value)
        except ValidationError as error:
            below = (to_init_error(detail) for detail in error.errors(include_url=False))
            details += [{**detail, "loc": (name, *detail.get("loc", ()))} for detail in below]
    if details:
        raise combined_error(details)
    return parsed


def _parse(data: Any) -> Any:
    if isinstance(data, tuple(KINDS.values())):
        return data
    if not isinstance(data, Mapping):
        return Const(val=data)
    if not is_typed(data):
        _refuse_without_type(data)
        return _parse_group(data)
    kind = data["type"]
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind].model_validate(dict(data))
    hint = suggestion(kind, KINDS) if isinstance(kind, str) else ""
    hint = hint or "a hyperparameter called type is written as type: {type: const, val: …}"
    raise combined_error([located_error(("type",), kind, reject(f"one of {', '.join(KINDS)}", hint=hint))])


def _refuse_without_type(data: Mapping[str, Any]) -> None:
    """Refuses a map with the fields of one hyperparameter: it would be passed on as a group of constants."""
    plain = {name for name, value in data.items() if not isinstance(value, (Mapping, Section))}
    fields = plain & _FIELDS_OF_RANGES
    for name in plain:
        is_kind = isinstance(data[name], str) and data[name] in KINDS
        if is_kind and (fields or SequenceMatcher(None, name, "type").ratio() >= _ALIKE):
            error = reject("", problem="unknown field", hint="did you mean 'type'?")
            raise combined_error([located_error((name,), data[name], error)])
    if fields:
        kinds = "categorical" if "vals" in fields else "int, double or log"
        error = reject(kinds, problem="missing", hint=_CONSTANTS)
        raise combined_error([located_error(("type",), data, error)])


def _dump(value: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump(mode="json")
    return {name: _dump(item) for name, item in value.items()}


def _parse_all(data: Any) -> dict[str, Any]:
    if is_typed(data) and data["type"] in KINDS and {*_FIELDS_OF_RANGES, "val"} & data.keys():
        problem = "one hyperparameter without its name"
        hint = "write hyperparameters: {NAME: {type: …}}, one level deeper"
        raise combined_error([located_error(("type",), data, reject("", problem=problem, hint=hint))])
    return _parse_group(data)


Hyperparameters: TypeAlias = Annotated[
    Mapping[str, Any],
    PlainValidator(_parse_all),
    PlainSerializer(_dump, return_type=dict[str, Any]),
    WithJsonSchema({"type": "object"}),
]
"""A map of names to hyperparameters, of any depth. In Python its values are ``Hyperparameter``."""


def leaves(hyperparameters: Mapping[str, Hyperparameter]) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield each hyperparameter that is no map, with its path of names."""
    for name, value in hyperparameters.items():
        if isinstance(value, Mapping):
            for path, leaf in leaves(value):
                yield (name, *path), leaf
        else:
            yield (name,), value
