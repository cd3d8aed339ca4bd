"""The ``entrypoint`` field: a command, or the class of a Trial API."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from resolute.contracts.documents.rejections import reject

_TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_]+")
_HARNESS = re.compile(
    r"(?:^|\s)--trial(?:\s|=|$)|\b(?:determined\.exec|resolute_launch)\.harness\b|launch\.autohorovod\b"
)
_FORMS = "a command as text, or as a list of texts, or module:TrialClass"


def _parse(data: Any) -> str | tuple[str, ...]:
    if isinstance(data, str):
        if not data.strip():
            raise reject(_FORMS, problem="it is empty")
        return data
    if isinstance(data, (list, tuple)) and all(isinstance(word, str) for word in data):
        if not data or not data[0]:
            raise reject(_FORMS, problem="it is empty")
        return tuple(data)
    raise reject(_FORMS)


Entrypoint: TypeAlias = Annotated[
    str | tuple[str, ...],
    PlainValidator(_parse),
    PlainSerializer(lambda value: value if isinstance(value, str) else list(value)),
    WithJsonSchema({"type": ["string", "array"]}),
]
"""Text is run by a shell unless it names a Trial class; a list is run as it is."""


def is_trial_class(entrypoint: str | tuple[str, ...] | None) -> bool:
    """Whether the entrypoint is the bare form ``module:TrialClass``."""
    return isinstance(entrypoint, str) and _TRIAL_CLASS.fullmatch(entrypoint) is not None


def runs_trial_class(entrypoint: str | tuple[str, ...] | None) -> bool:
    """Whether the entrypoint runs a Trial class, in its bare form or by a command that names the harness."""
    if entrypoint is None:
        return False
    text = entrypoint if isinstance(entrypoint, str) else " ".join(entrypoint)
    return is_trial_class(entrypoint) or _HARNESS.search(text) is not None
