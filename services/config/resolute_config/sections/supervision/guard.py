"""The ``guard`` section: which training reports are bad, and the reaction to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Count, Flag, Name, Section, SmallCount
from resolute_config.sections.supervision.relative import Relative

_EXPECTED = 'a number, or a multiple such as "3 x median of 200", of at most 1000 values'


def _bound(value: Any) -> int | float | str:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    relative = Relative.parse(value) if isinstance(value, str) else None
    if relative is None:
        raise reject(_EXPECTED)
    return f"{relative.factor:g} x median of {relative.values}"


Bound: TypeAlias = Annotated[
    int | float | str, PlainValidator(_bound), WithJsonSchema({"type": ["number", "string"]})
]


class Guard(Section):
    """The conditions for bad training reports, and the reaction to them.

    Attributes:
        metric: Name of the metric, in the group ``training``.
        nan: Whether a value that is not a finite number is bad.
        above: Bound above which a value is bad.
        then: Reaction: ``rollback`` sets the trial back to its last good checkpoint, ``pause`` does so and
            pauses the experiment, ``warn`` changes nothing.
        skip_batches: Number of batches that are left out after the trial went back.
        at_most: Number of times that a trial goes back. The next bad report pauses the experiment.
    """

    metric: Name = Field(description="the name of a metric of training, such as loss")
    nan: Flag = True
    above: Bound | None = None
    then: Literal["rollback", "pause", "warn"] = Field(
        default="rollback", description="one of rollback, pause, warn"
    )
    skip_batches: Count = 0
    at_most: SmallCount = 3

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """Something to look for."""
        if given.get("nan") is False and "above" not in given:
            yield "above", reject(_EXPECTED, problem="missing where nan is false")
