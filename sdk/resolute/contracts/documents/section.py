"""The base of every model of the config, and the types of its simple fields."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import InitErrorDetails, PydanticCustomError

from resolute.contracts.documents.rejections import (
    combined_error,
    located_error,
    nameable,
    reject,
    to_init_error,
    unknown,
)

INT64 = (-(2**63), 2**63 - 1)
"""Smallest and largest integer that is accepted: what every wire format and database here can carry."""


_SIZE = re.compile(r"(?P<number>(?:[0-9]*\.)?[0-9]+) ?(?:(?P<prefix>[kmgtp])(?:i?b)?|b)?", re.IGNORECASE)
_PREFIXES = " kmgtp"
_BUILDING = threading.RLock()


def _integral(value: Any) -> Any:
    # JSON has one kind of number: 1e4 and 64.0 are the integers that they look like.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise reject("a number")
    return value


def _bytes(value: Any) -> int:
    """Read a size in bytes; k, M, G, T, P are powers of 1024, with or without the i."""
    size: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        exact = float(match["number"]) * 1024 ** _PREFIXES.index((match["prefix"] or " ").lower())
        size = int(exact) if math.isfinite(exact) else None
    if size is None or not 0 <= size <= INT64[1]:
        raise reject('a number of bytes, or a size such as "4 GiB"')
    return size


Int: TypeAlias = Annotated[int, Strict(), BeforeValidator(_integral), Field(ge=INT64[0], le=INT64[1])]
"""An integer of 64 bits. Booleans and text are not integers; a float without a fraction is one."""

Count: TypeAlias = Annotated[Int, Field(ge=0)]
"""An integer of 0 or more."""

SmallCount: TypeAlias = Annotated[Count, Field(le=2**31 - 1)]
"""A count of 32 bits: of things that exist, such as slots."""

Positive: TypeAlias = Annotated[Int, Field(ge=1)]
"""An integer of 1 or more."""

Number: TypeAlias = Annotated[int | float, PlainValidator(_number)]
"""A finite number that stays as it was written: 4 stays 4 and 4.0 stays 4.0."""

Flag: TypeAlias = Annotated[bool, Strict()]
"""true or false, nothing else."""

Text: TypeAlias = Annotated[str, Strict()]
"""Text; numbers are not text."""

Name: TypeAlias = Annotated[Text, Field(min_length=1)]
"""Text that is not empty."""

Json: TypeAlias = Any
"""A value of the user's own shape. The door (``read_document``) lets only plain JSON values in."""

ByteSize: TypeAlias = Annotated[int, PlainValidator(_bytes), WithJsonSchema({"type": ["integer", "string"]})]
"""A number of bytes, written as such or like ``"4 GiB"``."""


class Section(BaseModel):
    """A frozen part of the config: unknown fields are faults, null means "not given".

    All faults of a section are reported together, each at its own path.

    Subclasses may set:
        shape: Text for the expected value in the fault of a value that is no map.
        advice: Removed fields, each with its replacement.
        renamed: Earlier names of fields that are still accepted, each with the current name.
        null_is_value: Fields for which null is a value and does not mean "not given".
        hidden: Fields whose values are never shown in faults.
    """

    # Deferred: a cluster starts without a config to read, and the many models of one take long to build.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, defer_build=True)

    shape: ClassVar[str] = "a map"
    advice: ClassVar[Mapping[str, str]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}
    null_is_value: ClassVar[frozenset[str]] = frozenset()
    hidden: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        """Build the model at its first use, by one thread at a time: pydantic before 2.14 has no lock."""
        with _BUILDING:
            return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **options)

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """Turn another accepted form of this section into a map; by default there is none."""
        return data

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:  # noqa: ARG003  # a hook
        """Yield what is wrong with which fields are given together, each with the field to blame."""
        return iter(())

    @classmethod
    def _described_shape(cls) -> str:
        names = list(cls.model_fields)[:3]
        return cls.shape if cls.shape != Section.shape else f"a map with fields such as {', '.join(names)}"

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        if isinstance(data, cls):
            return data
        data = cls.expand_shorthand(data)
        if not isinstance(data, dict):
            raise reject(cls._described_shape())
        # Given by both names it stays, and is an unknown field.
        earlier = {old: new for old, new in cls.renamed.items() if new not in data}
        data = {earlier.get(key, key): value for key, value in data.items()}
        given = {key: value for key, value in data.items() if value is not None or key in cls.null_is_value}
        details = list(cls._unknown_fields(data))
        known = {key: value for key, value in given.items() if cls._knows(key)}
        details += [located_error((field,), data.get(field), error) for field, error in cls.relations(known)]
        try:
            section = handler(known)
        except ValidationError as error:
            raise combined_error([*details, *cls._carried(error)]) from None
        if details:
            raise combined_error(details)
        return section

    @classmethod
    def _knows(cls, field: str) -> bool:
        return field in cls.model_fields or cls.model_config.get("extra") == "allow"

    @classmethod
    def _unknown_fields(cls, data: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        strangers = [key for key in data if not cls._knows(key)]
        known = nameable(strangers, cls.model_fields)
        for key in strangers:
            yield located_error((key,), data[key], unknown(key, known, advice=cls.advice.get(key, "")))

    @classmethod
    def _carried(cls, error: ValidationError) -> Iterator[InitErrorDetails]:
        for detail in error.errors(include_url=False):
            field = detail["loc"][0] if detail["loc"] else ""
            if detail["type"] == "missing" and len(detail["loc"]) == 1 and field in cls.model_fields:
                yield located_error(
                    detail["loc"], None, _missing(cls.model_fields[str(field)].description or "")
                )
            else:
                yield to_init_error(detail, hidden=field in cls.hidden)


def _missing(description: str) -> PydanticCustomError:
    return reject(description, problem="missing", incomplete=True)
