"""Models: names under which checkpoints are kept as versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resolute_checkpoints.domain.checkpoint import Checkpoint
from resolute_serving.validation import invalid_field

MAX_NAME_CHARACTERS = 200
_MAX_TEXT_BYTES = 64 * 1024
_MAX_LABELS = 100


@dataclass(frozen=True, slots=True)
class ModelKey:
    """The key of a model: one of three identifiers."""

    name: str = ""
    number: int = 0
    model_id: str = ""

    def __str__(self) -> str:
        return f"model {self.name or self.number or self.model_id!r}"


@dataclass(frozen=True, slots=True)
class Author:
    """The user who created a model or a version."""

    name: str
    user_id: int | None = None
    """None for a service, and for rows from before users had ids, until they are assigned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewModel:
    """A model to create."""

    name: str
    description: str = ""
    notes: str = ""
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    workspace_id: int | None = None
    """None for a model that belongs to no workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version to create."""

    checkpoint_id: str
    name: str = ""
    comment: str = ""
    notes: str = ""
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """An update of a model or a version."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """New values by the names of fields."""
    metadata_patch: Mapping[str, Any] | None = None
    """Keys that replace those of the metadata; None as a value removes one."""
    etag: str = ""
    """What the caller has seen; empty to update whatever there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A name under which checkpoints are kept as versions."""

    model_id: str
    number: int
    name: str
    description: str
    notes: str
    labels: tuple[str, ...]
    metadata: Mapping[str, Any]
    workspace_id: int | None
    author: Author
    archived: bool
    version_count: int
    create_time: float
    """Seconds since 1970."""
    update_time: float
    """Seconds since 1970."""
    revision: int

    def __str__(self) -> str:
        return f"model {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """A checkpoint as a version of a model."""

    model: Model
    number: int
    checkpoint: Checkpoint
    name: str
    comment: str
    notes: str
    labels: tuple[str, ...]
    metadata: Mapping[str, Any]
    author: Author
    create_time: float
    """Seconds since 1970."""
    revision: int

    def __str__(self) -> str:
        return f"version {self.number} of {self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFilter:
    """A filter of models. Empty fields filter nothing."""

    names: Collection[str] = ()
    name_contains: str = ""
    description_contains: str = ""
    required_labels: Collection[str] = ()
    workspace_ids: Collection[int] = ()
    owner_ids: Collection[int] = ()
    archived: bool | None = None
    visible: Collection[int] | None = None
    """Only models of these workspaces; None for all, also those of none."""


def check_name(name: str, *, field: str = "model.name") -> str:
    """Checks and returns the name of a model.

    Raises:
        InvalidArgumentError: It is empty, too long, or a number, which would name another model.
    """
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME_CHARACTERS:
        raise invalid_field(
            field, f"is {name[:80]!r}; write 1 to {MAX_NAME_CHARACTERS} characters, no spaces around"
        )
    if name.isdecimal():
        raise invalid_field(
            field, f"is {name!r}; a model's name may not be a number, numbers name models too"
        )
    return name


def check_text(text: str, *, field: str, most: int = _MAX_TEXT_BYTES) -> str:
    """Checks and returns a text.

    Raises:
        InvalidArgumentError: It is too long.
    """
    if len(text.encode()) > most:
        raise invalid_field(field, f"takes more than {most} bytes; shorten it")
    return text


def check_labels(labels: Sequence[str], *, field: str) -> tuple[str, ...]:
    """Checks labels and returns them sorted, without repetitions.

    Raises:
        InvalidArgumentError: There are too many, or one is empty or too long.
    """
    if len(labels) > _MAX_LABELS or any(not 0 < len(label) <= MAX_NAME_CHARACTERS for label in labels):
        raise invalid_field(
            field, f"must be at most {_MAX_LABELS} words of 1 to {MAX_NAME_CHARACTERS} characters"
        )
    return tuple(sorted(set(labels)))
