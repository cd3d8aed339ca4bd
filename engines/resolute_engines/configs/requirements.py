"""A pool's requirements for configs: a field with another value is refused by name, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resolute.contracts.documents.refusals import refused_config
from resolute.errors import Violation


class ConfigRule(Protocol):
    """A requirement of a pool for configs. It is a plain value, so it can be sent to worker processes."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        """What is wrong in a checked config, or in the sections of one that are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The required value of a field, if the field is given."""

    path: str
    """Dotted path of the field; ``name[]`` stands for each entry of a list."""
    allowed: tuple[Any, ...] = ()
    """What it may be; nothing: it is to be left out."""
    reason: str
    """Why, and what to do, as a whole clause."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        """What is wrong with the field in a config."""
        for path, value in _values(config, self.path.split(".")):
            if value is not None and value not in self.allowed:
                yield Violation(path, f"found {value!r}; {self.reason}")


def _values(value: Any, steps: Sequence[str], at: str = "") -> Iterator[tuple[str, Any]]:
    if not steps:
        yield at.lstrip("."), value
    elif isinstance(value, Mapping):
        name = steps[0].removesuffix("[]")
        inner = value.get(name)
        if name == steps[0]:
            yield from _values(inner, steps[1:], f"{at}.{name}")
        else:
            for index, entry in enumerate(inner or ()):
                yield from _values(entry, steps[1:], f"{at}.{name}[{index}]")


def require(config: Mapping[str, Any], requirements: Iterable[ConfigRule]) -> None:
    """Makes sure that a config meets what a pool requires.

    Raises:
        InvalidConfigError: It does not; the error lists every fault.
    """
    faults = [fault for requirement in requirements for fault in requirement.faults(config)]
    if faults:
        raise refused_config(*faults)
