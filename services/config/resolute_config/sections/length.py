"""Lengths of training: a number of batches, records or epochs, or of the script's own unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import INT64

Unit: TypeAlias = Literal["batches", "records", "epochs"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True, slots=True)
class Length:
    """A length of training.

    Attributes:
        value: Number of units, 0 or more.
        unit: The unit; None for the script's own unit.
    """

    value: int
    unit: Unit | None = None

    def to_config(self) -> int | dict[str, int]:
        """The length as users write it: ``{"batches": 100}``, or ``100`` without a unit."""
        return self.value if self.unit is None else {self.unit: self.value}


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64[1] else None
    )


def _parse(data: Any, *, least: int, least_bare: int | None) -> Length:
    """Read a length; ``least_bare`` is the smallest bare integer, None when a unit is needed."""
    forms = f"exactly one of {{batches: N}}, {{records: N}}, {{epochs: N}} with N ≥ {least}"
    if least_bare is not None:
        forms += f", or a bare integer ≥ {least_bare} in units of the script's own"
    if isinstance(data, Length):
        data = data.to_config()
    if not isinstance(data, dict):
        bare = _integer(data)
        if bare is None or least_bare is None or bare < least_bare:
            raise reject(forms)
        return Length(bare)
    given = {key: value for key, value in data.items() if value is not None}
    if len(given) != 1 or not given.keys() <= set(UNITS):
        keys = ", ".join(given) or "nothing"
        raise reject(forms, problem=f"found a map with {keys}")
    unit, amount = next(iter(given.items()))
    value = _integer(amount)
    if value is None or value < least:
        raise reject(forms, problem=f"found {amount!r} {unit}")
    return Length(value, cast("Unit", unit))


def _period(data: Any) -> Length:
    return _parse(data, least=0, least_bare=None)


def _search_length(data: Any) -> Length:
    return _parse(data, least=1, least_bare=0)


def _rung_length(data: Any) -> Length:
    return _parse(data, least=1, least_bare=1)


def _length_with_unit(data: Any) -> Length:
    return _parse(data, least=1, least_bare=None)


_AS_CONFIG = PlainSerializer(Length.to_config, return_type=Any)
_SCHEMA = WithJsonSchema({"type": ["integer", "object"]})

Period: TypeAlias = Annotated[Length, PlainValidator(_period), _AS_CONFIG, _SCHEMA]
"""A length with a unit; 0 means never."""

SearchLength: TypeAlias = Annotated[Length, PlainValidator(_search_length), _AS_CONFIG, _SCHEMA]
"""The length of a trial: with a unit at least 1; without a unit 0 or more, where 0 lets the script decide."""

RungLength: TypeAlias = Annotated[Length, PlainValidator(_rung_length), _AS_CONFIG, _SCHEMA]
"""The length of the longest trial of a search with rungs: at least 1, with or without a unit."""

UnitLength: TypeAlias = Annotated[Length, PlainValidator(_length_with_unit), _AS_CONFIG, _SCHEMA]
"""A length of at least 1 that needs a unit."""
