"""The names by which requests refer to objects of a workspace."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from resolute_serving.auth.grants import NO_WORKSPACE


class Kind(Enum):
    """The kind of a named object, and the kind of its name."""

    EXPERIMENT = "experiment"
    """By UUID."""
    EXPERIMENT_NUMBER = "experiment number"
    TRIAL = "trial"
    """By UUID."""
    TRIAL_NUMBER = "trial number"
    ALLOCATION = "allocation"
    WORKSPACE = "workspace"
    PROJECT = "project"
    CHECKPOINT = "checkpoint"
    MODEL = "model"
    """By UUID."""
    MODEL_NUMBER = "model number"
    MODEL_NAME = "model name"


_UUIDS = frozenset({Kind.EXPERIMENT, Kind.TRIAL, Kind.CHECKPOINT, Kind.MODEL})


@dataclass(frozen=True)
class Resource:
    """One object that a request names."""

    kind: Kind
    key: str
    """Its UUID in the usual form, its number in decimal, or its name."""

    def __str__(self) -> str:
        return f"{self.kind.value.removesuffix(' number').removesuffix(' name')} {self.key[:80]}"


WITHOUT_WORKSPACE = Resource(Kind.WORKSPACE, str(NO_WORKSPACE))
"""Named by requests for something that belongs to no workspace."""


def named(kind: Kind, keys: Iterable[str | int]) -> list[Resource]:
    """The objects that keys name; what is not set names none."""
    return [Resource(kind, _normal(kind, key)) for key in keys if key]


def experiment_key(key: Any) -> list[Resource]:
    """The experiment of an ``ExperimentKey``."""
    return _by_key(key, {"number": Kind.EXPERIMENT_NUMBER, "experiment_id": Kind.EXPERIMENT})


def trial_key(key: Any) -> list[Resource]:
    """The trial of a ``TrialKey``."""
    return _by_key(key, {"number": Kind.TRIAL_NUMBER, "trial_id": Kind.TRIAL})


def model_key(key: Any) -> list[Resource]:
    """The model of a ``ModelKey``."""
    kinds = {"model_id": Kind.MODEL, "number": Kind.MODEL_NUMBER, "name": Kind.MODEL_NAME}
    return _by_key(key, kinds)


def _by_key(key: Any, kinds: Mapping[str, Kind]) -> list[Resource]:
    field = key.WhichOneof("key")
    return [] if field is None else named(kinds[field], [getattr(key, field)])


def _normal(kind: Kind, key: str | int) -> str:
    text = str(key)
    if kind in _UUIDS:
        try:
            return str(uuid.UUID(text))
        except ValueError:
            return text
    return text
