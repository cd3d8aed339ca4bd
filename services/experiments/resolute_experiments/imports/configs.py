"""Reads the config of an imported experiment. No pool checks it, because it never starts.

A config that cannot be read completely is kept unchanged, merged over the defaults. Reading a large config
takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError
from resolute.errors import InvalidConfigError
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_experiments.specs.storage import partial_without_secrets, without_secrets

_NO_METRIC = "loss"
"""A config must name a metric, also where none was kept."""
_READ_HERE = ("searcher", "resources", "checkpoint_storage", "environment")
"""Sections that this service reads of every experiment, so that they must be as it writes them."""
_UNREADABLE = (ConfigError, InvalidConfigError)
"""The second is what a storage is refused by whose address is in a secret that is masked."""
_KEPT = frozenset({"save_experiment_best", "save_trial_best", "save_trial_latest"})
"""Fields of the section on storage that do not say where it is."""


@dataclass(frozen=True, kw_only=True)
class ImportedConfig:
    """An imported config without its secrets."""

    content: dict[str, Any]
    """The whole config, defaults filled in."""
    fault: str = ""
    """Why it could not be read as a whole; empty when it could."""
    names_storage: bool = True
    """Whether it says, in a way that is known here, where its checkpoints lie."""


def read_imported_config(name: str, config_yaml: str, cluster_defaults: dict[str, Any]) -> ImportedConfig:
    """Reads a config.

    Args:
        name: Name of its experiment.
        config_yaml: What its author wrote.
        cluster_defaults: Lowest layer of every config.
    """
    defaults = [Layer("cluster defaults", cluster_defaults)]
    # A seed that the other cluster does not tell is the same at every repetition.
    random = Random(config_yaml)  # noqa: S311 - no secret
    written = _readable(config_yaml)
    try:
        config = parse_config(config_yaml, layers=defaults, random=random, require_entrypoint=False)
        content = without_secrets(config.to_dict())
        return ImportedConfig(content=content, names_storage=bool(written.get("checkpoint_storage")))
    except _UNREADABLE as error:
        fault = str(error)
    searcher = _mapping(written.get("searcher"))
    known: dict[str, Any] = {
        "name": name,
        "searcher": {
            "name": "single",
            "metric": _text(searcher.get("metric")) or _NO_METRIC,
            "smaller_is_better": searcher.get("smaller_is_better") is not False,
        },
    }
    known["reproducibility"] = {"experiment_seed": random.randrange(2**31)}
    whole = _with_storage(known, written.get("checkpoint_storage"), defaults)
    names_storage = whole is not None
    whole = whole or _complete(known, defaults)
    kept = {key: value for key, value in written.items() if key not in _READ_HERE}
    content = {**whole, **kept, "searcher": {**whole["searcher"], **searcher, **known["searcher"]}}
    content["searcher"]["name"] = _text(searcher.get("name")) or "single"
    return ImportedConfig(content=partial_without_secrets(content), fault=fault, names_storage=names_storage)


def with_own_storage(content: Mapping[str, Any], cluster_defaults: dict[str, Any]) -> dict[str, Any]:
    """Lets a config name the storage of this cluster, and keep as many checkpoints as before.

    Args:
        content: A whole config.
        cluster_defaults: Lowest layer of every config, which names that storage.
    """
    known = {"name": "any", "searcher": {"name": "single", "metric": _NO_METRIC}}
    own = _complete(known, [Layer("cluster defaults", cluster_defaults)])["checkpoint_storage"]
    kept = {name: value for name, value in content["checkpoint_storage"].items() if name in _KEPT}
    return without_secrets({**content, "checkpoint_storage": {**own, **kept}})


def _with_storage(known: dict[str, Any], storage: object, defaults: list[Layer]) -> dict[str, Any] | None:
    """Fills in defaults beside where its checkpoints lie; None if that cannot be read."""
    try:
        return _complete({**known, "checkpoint_storage": storage}, defaults)
    except _UNREADABLE:
        return None


def _complete(known: dict[str, Any], defaults: list[Layer]) -> dict[str, Any]:
    return without_secrets(parse_config(known, layers=defaults, require_entrypoint=False).to_dict())


def _readable(config_yaml: str) -> dict[str, Any]:
    try:
        return dict(read_document(config_yaml).content)
    except ConfigError:
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
