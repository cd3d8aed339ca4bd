"""The requirements of a config for the machines of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_preemptible(config: Mapping[str, Any]) -> bool:
    """Tells whether they may be taken away; configs that were stored before this field existed mean no."""
    return bool((config.get("resources", {}).get("preemptible") or {}).get("enabled"))
