"""What a script says of a run outside of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from resolute.contracts.object_stores.location import BucketStorage
from resolute.core.checkpoint.storage import DirectoryStorage, parse_storage


@dataclass(frozen=True)
class DefaultConfig:
    """What an experiment's config would say; it counts where no cluster runs the script.

    The first run of an experiment decides: later ones find it as it is.
    """

    name: str | None = None
    """Name of the experiment; None for the name of the script."""
    hparams: Mapping[str, Any] | None = None
    """Hyperparameters of the trial."""
    data: Mapping[str, Any] | None = None
    """Free data."""
    description: str | None = None
    labels: Sequence[str] | None = None
    checkpoint_storage: str | Mapping[str, Any] | None = None
    """Where checkpoints go: a path or URL as ``core.init`` takes it, or a section of a config; None for where
    the cluster keeps them."""
    searcher: Mapping[str, Any] | None = None
    """Section of a config; its ``metric`` and ``smaller_is_better`` say which validation is the best."""

    def fields(self) -> dict[str, Any]:
        """Returns the fields of the experiment's config."""
        found = {
            "data": None if self.data is None else dict(self.data),
            "description": self.description,
            "labels": None if self.labels is None else list(self.labels),
            "checkpoint_storage": _storage_section(self.checkpoint_storage),
            "searcher": None if self.searcher is None else dict(self.searcher),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class UnmanagedConfig:
    """Where a run outside of the cluster belongs."""

    workspace: str | None = None
    project: str | None = None
    external_experiment_id: str | None = None
    """Names the experiment across runs; None for an experiment of its own."""
    external_trial_id: str | None = None
    """Names the trial of that experiment across runs, so that a script that starts again continues with it;
    None for a trial of its own."""

    def fields(self) -> dict[str, Any]:
        """Returns the fields of the experiment's config."""
        found = {"workspace": self.workspace, "project": self.project}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Config:
    """Both in one: what the experiment's config would say, and where a run outside of the cluster belongs.

    The fields are those of ``DefaultConfig`` and ``UnmanagedConfig``. Where a cluster runs the script it is
    ignored.
    """

    name: str | None = None
    hparams: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None
    description: str | None = None
    labels: Sequence[str] | None = None
    workspace: str | None = None
    project: str | None = None
    checkpoint_storage: str | Mapping[str, Any] | None = None
    searcher: Mapping[str, Any] | None = None
    external_experiment_id: str | None = None
    external_trial_id: str | None = None

    def defaults(self) -> DefaultConfig:
        """The part that the experiment's config would say."""
        return DefaultConfig(**{field.name: getattr(self, field.name) for field in fields(DefaultConfig)})

    def unmanaged(self) -> UnmanagedConfig:
        """The part that says where the run belongs."""
        return UnmanagedConfig(**{field.name: getattr(self, field.name) for field in fields(UnmanagedConfig)})


def _storage_section(storage: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if storage is None:
        return None
    if not isinstance(storage, str):
        return dict(storage)
    parsed = parse_storage(storage)
    if isinstance(parsed, DirectoryStorage):
        return {"type": "directory", "container_path": str(parsed.path)}
    assert isinstance(parsed, BucketStorage)
    return {"type": parsed.kind, "bucket": parsed.bucket, "prefix": parsed.prefix or None}
