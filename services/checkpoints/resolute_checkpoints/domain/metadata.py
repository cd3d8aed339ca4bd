"""The free metadata of a checkpoint, and the one key in it that the registry reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from resolute_serving.validation import invalid_field

STEPS_KEYS = ("steps_completed", "latest_batch")
"""Names under which scripts of different ages say how far they were; the first that is there counts."""
MAX_METADATA_BYTES = 256 * 1024
"""Most bytes of the metadata as JSON."""


def steps_completed(metadata: Mapping[str, Any]) -> int:
    """Returns how many steps were completed when the checkpoint was written.

    Raises:
        InvalidArgumentError: Metadata has no such key, or its value is not a whole number from 0.
    """
    for key in STEPS_KEYS:
        if key in metadata:
            steps = metadata[key]
            if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
                raise invalid_field(f"metadata.{key}", f"is {steps!r}; it must be a whole number from 0")
            return steps
    raise invalid_field(
        "metadata", 'has no "steps_completed"; add the number of steps completed, a whole number'
    )


def encode(metadata: Mapping[str, Any]) -> str:
    """Writes metadata as JSON; equal metadata gives equal text.

    Raises:
        InvalidArgumentError: It is too large.
    """
    text = json.dumps(metadata, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > MAX_METADATA_BYTES:
        raise invalid_field(
            "metadata", f"takes {size} bytes; at most {MAX_METADATA_BYTES} are kept, put the rest into a file"
        )
    return text


def decode(text: str) -> dict[str, Any]:
    """Reads metadata that ``encode`` wrote."""
    result: dict[str, Any] = json.loads(text)
    return result


def patched(metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata with the keys of a patch replaced, and those that are null in it removed.

    Raises:
        InvalidArgumentError: It would change how many steps were completed.
    """
    removed = {key for key, value in patch.items() if value is None}
    result = {key: value for key, value in {**metadata, **patch}.items() if key not in removed}
    for key in STEPS_KEYS:
        if key in metadata and result.get(key) != metadata[key]:
            raise invalid_field(
                f"patch.{key}", f"differs from {metadata[key]}; the steps of a commit cannot change"
            )
    return result
