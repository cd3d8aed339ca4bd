"""Removes the secrets from configs that are logged or shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MASK = "********"
"""Stands for a secret."""
_OF_STORAGE = frozenset({"access_key", "secret_key", "connection_string", "credential"})


def mask_checkpoint_storage(storage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a section ``checkpoint_storage`` with its keys masked; the given one stays as it is."""
    return {
        name: MASK if name in _OF_STORAGE and value is not None else value for name, value in storage.items()
    }


def mask_config_dict(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with its secrets masked; the given one stays as it is.

    Secrets are the keys of ``checkpoint_storage``, the password of ``environment.registry_auth``, the tokens
    of ``integrations.pachyderm``, and all of ``data.secrets``.
    """
    masked = dict(config)
    if isinstance(config.get("checkpoint_storage"), Mapping):
        masked["checkpoint_storage"] = mask_checkpoint_storage(config["checkpoint_storage"])
    secrets = (config.get("data") or {}).get("secrets")
    if isinstance(secrets, Mapping):
        masked = _with(masked, "data", "secrets", value=dict.fromkeys(secrets, MASK))
    for path in (
        ("environment", "registry_auth", "password"),
        ("integrations", "pachyderm", "dataset", "token"),
        ("integrations", "pachyderm", "pachd", "token"),
    ):
        if _at(config, path) is not None:
            masked = _with(masked, *path, value=MASK)
    return masked


def _at(config: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def _with(config: Mapping[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a path that is there."""
    first, *rest = path
    return {**config, first: _with(config[first], *rest, value=value) if rest else value}
