"""The image of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.errors import InvalidArgumentError


def image_of(config: Mapping[str, Any], *, gpus: bool, of_pool: str) -> str:
    """The image of a config for the devices of its pool, else that of the pool.

    Args:
        config: The experiment's config, with its defaults.
        gpus: Whether the slots of the pool are GPUs.
        of_pool: The image that the pool's settings name; empty for none.

    Raises:
        InvalidArgumentError: Neither names one.
    """
    environment = config.get("environment") or {}
    named = (environment.get("image") or {}).get("cuda" if gpus else "cpu")
    if not (named or of_pool):
        raise InvalidArgumentError(
            "environment.image is not given and the pool has no image of its own: name one"
        )
    return str(named or of_pool)
