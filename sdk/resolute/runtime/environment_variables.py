"""``environment.environment_variables`` of a config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_DEVICE_CLASSES = {"cpu": ("cpu",), "gpu": ("cuda", "gpu", "rocm")}


def configured_variables(
    config: Mapping[str, Any], *, slot_kind: str, agent: Mapping[str, str]
) -> dict[str, str]:
    """Reads ``environment.environment_variables``: a list, or lists by class of device.

    Args:
        config: The experiment's config.
        slot_kind: ``cpu`` or ``gpu``.
        agent: Environment of the machine, for entries that are a name alone and pass its value on.
    """
    section = (config.get("environment") or {}).get("environment_variables") or ()
    if isinstance(section, Mapping):
        lists = [section.get(name) or () for name in _DEVICE_CLASSES.get(slot_kind, ("cpu",))]
        entries: Iterable[str] = [entry for part in lists for entry in part]
    else:
        entries = section
    result: dict[str, str] = {}
    for entry in entries:
        name, equals, value = str(entry).partition("=")
        if equals:
            result[name] = value
        elif name in agent:
            result[name] = agent[name]
    return result
