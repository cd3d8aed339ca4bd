"""What the registry keeps of models: names under which checkpoints are versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.errors import InvalidArgumentError, Violation
from resolute_checkpoints.domain.checkpoint import Checkpoint

DEFAULT_WORKSPACE = "Uncategorized"
MAX_NAME_CHARACTERS = 200
_MAX_TEXT_BYTES = 64 * 1024
_MAX_LABELS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is to be said of a model or a version from now on; None leaves it as it is."""

    name: str | None = None
    text: str | None = None
    """One line."""
    notes: str | None = None
    labels: tuple[str, ...] | None = None
    metadata_patch: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Checks sizes.

        Raises:
            InvalidArgumentError: Something is too long, or a label is empty.
        """
        for field, value in (("name", self.name), ("description", self.text), ("notes", self.notes)):
            most = MAX_NAME_CHARACTERS if field == "name" else _MAX_TEXT_BYTES
            if value is not None and len(value.encode()) > most:
                raise invalid(f"description.{field}", f"takes more than {most} bytes; shorten it")
        labels = self.labels or ()
        if len(labels) > _MAX_LABELS or any(not 0 < len(label) <= MAX_NAME_CHARACTERS for label in labels):
            raise invalid(
                "description.labels", f"must be at most {_MAX_LABELS} words of 1 to {MAX_NAME_CHARACTERS}"
            )


@dataclass(frozen=True, slots=True)
class ModelKey:
    """Names a model by one of three."""

    name: str = ""
    number: int = 0
    model_id: str = ""

    def __str__(self) -> str:
        return f"model {self.name or self.number or self.model_id!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A name under which checkpoints are versions."""

    model_id: str
    number: int
    name: str
    description: str
    notes: str
    labels: tuple[str, ...]
    metadata: Mapping[str, Any]
    workspace: str
    owner: str
    archived: bool
    version_count: int
    create_time: float
    """Seconds since 1970."""
    update_time: float
    """Seconds since 1970."""

    def __str__(self) -> str:
        return f"model {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """A checkpoint as a version of a model."""

    model: Model
    version: int
    checkpoint: Checkpoint
    name: str
    comment: str
    notes: str
    labels: tuple[str, ...]
    metadata: Mapping[str, Any]
    owner: str
    create_time: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuery:
    """Which models a list holds."""

    name: str = ""
    description: str = ""
    labels: Sequence[str] = ()
    workspaces: Sequence[str] = ()
    include_archived: bool = False


def check_name(name: str) -> str:
    """Returns the name of a model as it was sent.

    Raises:
        InvalidArgumentError: It is empty, too long, or a number, which would name another model.
    """
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME_CHARACTERS:
        raise invalid(
            "name", f"is {name[:80]!r}; write 1 to {MAX_NAME_CHARACTERS} characters, no spaces around"
        )
    if name.isdecimal():
        raise invalid("name", f"is {name!r}; a model's name may not be a number, numbers name models too")
    return name


def invalid(field: str, problem: str) -> InvalidArgumentError:
    """Makes the error of one field."""
    message = f"{field} {problem}"
    return InvalidArgumentError(message, violations=[Violation(field, message)])
