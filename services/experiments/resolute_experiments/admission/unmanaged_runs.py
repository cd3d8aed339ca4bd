"""Parses the description that a script outside of the cluster sends of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute.api.experiments.v1 import trials_service_pb2
from resolute.contracts.documents.faults import ConfigError
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_experiments.specs.storage import without_secrets

_NO_METRIC = "loss"
"""A config must name a metric, also where nothing is searched."""
_FIELDS = frozenset(
    {"description", "labels", "data", "workspace", "project", "checkpoint_storage", "searcher", "profiling"}
)
"""Fields of a config that mean something where the cluster runs nothing."""


@dataclass(frozen=True, kw_only=True)
class UnmanagedRun:
    """The description of a run, as plain data."""

    config: dict[str, Any]
    """Its experiment's whole config, defaults filled in, without secrets."""
    hparams: dict[str, Any]
    metadata: dict[str, Any] | None
    """Free metadata of its trial; None where it is not given."""


def read_unmanaged_run(message: bytes, cluster_defaults: dict[str, Any]) -> UnmanagedRun:
    """Reads a message.

    Args:
        message: The ``BeginRunRequest`` as bytes, since messages cannot be sent to worker processes.
        cluster_defaults: Lowest layer of every config.

    Raises:
        InvalidArgumentError: A value of the config is wrong, or one of its fields means nothing here.
    """
    request = trials_service_pb2.BeginRunRequest.FromString(message)
    try:
        config = whole_config(request.name, to_mapping(request.config), cluster_defaults=cluster_defaults)
    except ConfigError as error:
        raise InvalidArgumentError(f"the experiment {request.name!r} is not valid: {error}") from error
    return UnmanagedRun(
        config=config,
        hparams=to_mapping(request.hparams),
        metadata=to_mapping(request.metadata) if request.HasField("metadata") else None,
    )


def whole_config(name: str, fields: Mapping[str, Any], *, cluster_defaults: dict[str, Any]) -> dict[str, Any]:
    """Makes the config of an experiment that runs elsewhere.

    Args:
        name: Its name.
        fields: What its author says of it.
        cluster_defaults: Lowest layer of every config.

    Raises:
        ConfigError: A value is wrong.
        InvalidArgumentError: A field means nothing here.
    """
    unknown = sorted(set(fields) - _FIELDS)
    if unknown:
        raise InvalidArgumentError(
            f"the config of an unmanaged experiment has no {', '.join(unknown)}; "
            f"it may have {', '.join(sorted(_FIELDS))}"
        )
    given = {key: value for key, value in fields.items() if value is not None}
    searcher = {"name": "single", "metric": _NO_METRIC, **(given.pop("searcher", None) or {})}
    config = parse_config(
        {"name": name, **given, "searcher": searcher},
        layers=[Layer("cluster defaults", cluster_defaults)],
        require_entrypoint=False,
    )
    return without_secrets(config.to_dict())
