"""The ``log_policies`` section: what to do when a line of a trial's logs matches a pattern."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Name, Section

_NOT_IN_RE2 = re.compile(r"\(\?(?:[=!]|<[=!]|\(|>)|\\[1-9]|\(\?P=")


def _pattern(pattern: str) -> str:
    """Accept what both RE2 and Python understand: RE2 lacks look-around and back references."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise reject("a regular expression", hint=f"it is not one: {error}") from None
    if _NOT_IN_RE2.search(pattern.replace("\\\\", "")):
        raise reject("a regular expression in RE2 syntax, without look-around and back references")
    return pattern


Pattern: TypeAlias = Annotated[Name, AfterValidator(_pattern)]


class LogAction(Section):
    """The action of a log policy.

    Attributes:
        type: Kind of action: ``cancel_retries`` does not restart the trial; ``exclude_node`` restarts it on
            another node.
    """

    type: Literal["cancel_retries", "exclude_node"] = Field(description="one of cancel_retries, exclude_node")

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """The bare name of the action, as later configs write it."""
        return {"type": data} if isinstance(data, str) else data


class LogPolicy(Section):
    """A pattern, and the action for lines that match it.

    Attributes:
        pattern: Regular expression in RE2 syntax, which is searched for in each line. Without a pattern
            nothing matches.
        action: The action. Without one the run is only labelled with the name.
        name: Name of the policy. A policy with only a name disables the lower layers' policy of that name.
    """

    advice: ClassVar[Mapping[str, str]] = {"signal": "renamed; give it as name"}

    pattern: Pattern | None = None
    action: LogAction | None = None
    name: Name | None = None

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """A name, or both a pattern and an action."""
        if "name" not in given:
            for field, expected in (
                ("pattern", "a regular expression"),
                ("action", "a map with type: cancel_retries or exclude_node"),
            ):
                if field not in given:
                    yield field, reject(f"{expected}, or a name", problem="missing")


def _distinct(policies: tuple[LogPolicy, ...]) -> tuple[LogPolicy, ...]:
    """Each policy once; two of one name that differ are at fault."""
    kept = tuple(dict.fromkeys(policies))
    names = Counter(policy.name for policy in kept if policy.name is not None)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        problem = f"log_policies have duplicated names: {', '.join(repeated)}"
        raise reject("a name of its own for each policy", problem=problem)
    return kept


LogPolicies: TypeAlias = Annotated[tuple[LogPolicy, ...], AfterValidator(_distinct)]

DEFAULT_LOG_POLICIES: tuple[Mapping[str, str], ...] = (
    {"name": "CUDA OOM", "pattern": ".*CUDA out of memory.*"},
    {"name": "ECC Error", "pattern": ".*uncorrectable ECC error encountered.*"},
)
"""Below every other layer: labels for the failures of a GPU."""
