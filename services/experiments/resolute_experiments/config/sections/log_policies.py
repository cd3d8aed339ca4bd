"""The ``log_policies`` section: what to do when a line of a trial's logs matches a pattern."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from resolute_experiments.config.validation.rejections import reject
from resolute_experiments.config.validation.section import Name, Section

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
    """What to do.

    Attributes:
        type: ``cancel_retries`` does not restart the trial; ``exclude_node`` restarts it elsewhere.
    """

    type: Literal["cancel_retries", "exclude_node"] = Field(description="one of cancel_retries, exclude_node")

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """The bare name of the action, as later configs write it."""
        return {"type": data} if isinstance(data, str) else data


class LogPolicy(Section):
    """A pattern and what to do when a line matches it.

    Attributes:
        pattern: Regular expression in RE2 syntax, looked for in each line.
        action: What to do.
        name: A name for people.
    """

    pattern: Pattern = Field(description="a regular expression")
    action: LogAction = Field(description="a map with type: cancel_retries or exclude_node")
    name: Name | None = None


def _without_repetitions(policies: tuple[LogPolicy, ...]) -> tuple[LogPolicy, ...]:
    return tuple(dict.fromkeys(policies))


LogPolicies: TypeAlias = Annotated[tuple[LogPolicy, ...], AfterValidator(_without_repetitions)]
