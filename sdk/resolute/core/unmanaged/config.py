"""The configuration of an unmanaged run by its script."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from resolute.contracts.object_stores.location import BucketStorage
from resolute.core.checkpoint.storage import DirectoryStorage, parse_storage


@dataclass(frozen=True)
class Config:
    """The config of an unmanaged run's experiment, and the experiment and trial that the run belongs to.

    It is ignored if a cluster runs the script. The first run of an experiment sets it; later runs do not
    change it.

    Examples:
        >>> from resolute import core_v2
        >>> core_v2.Config(name="mnist", hparams={"lr": 0.1}, labels=["laptop"]).fields()
        {'labels': ['laptop']}
    """

    name: str | None = None
    """Name of the experiment; None for the name of the script."""
    hparams: Mapping[str, Any] | None = None
    """Hyperparameters of the trial."""
    data: Mapping[str, Any] | None = None
    """Free data."""
    description: str | None = None
    labels: Sequence[str] | None = None
    workspace: str | None = None
    project: str | None = None
    checkpoint_storage: str | Mapping[str, Any] | None = None
    """Where checkpoints go: a path or URL as ``core.init`` takes it, or a section of a config; None for where
    the cluster keeps them."""
    searcher: Mapping[str, Any] | None = None
    """Section of a config; its ``metric`` and ``smaller_is_better`` say which validation is the best."""
    external_experiment_id: str | None = None
    """Names the experiment across runs; None for an experiment of its own."""
    external_trial_id: str | None = None
    """Names the trial of that experiment across runs, so that a script that starts again continues with it;
    None for a trial of its own."""
    reports: str | None = None
    """``strict`` makes a report that cannot be recorded raise in its call; None has it left out."""

    def fields(self) -> dict[str, Any]:
        """Returns the fields of the experiment's config."""
        fields_given = {
            "data": None if self.data is None else dict(self.data),
            "description": self.description,
            "labels": None if self.labels is None else list(self.labels),
            "workspace": self.workspace,
            "project": self.project,
            "checkpoint_storage": _storage_section(self.checkpoint_storage),
            "searcher": None if self.searcher is None else dict(self.searcher),
            "reports": self.reports,
        }
        return {name: value for name, value in fields_given.items() if value is not None}

    def check_names(self) -> None:
        """Checks the names across runs.

        Raises:
            NotImplementedError: One is no text, or the trial has one and its experiment has none.
        """
        for name in ("external_experiment_id", "external_trial_id"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise NotImplementedError(
                    f"{name} is {given!r}; a text was expected, which names it across runs"
                )
        if self.external_trial_id and not self.external_experiment_id:
            raise NotImplementedError(
                f"external_trial_id is {self.external_trial_id!r}, which names a trial of an experiment: set "
                "external_experiment_id too"
            )

    def placed_by(self, other: Config | None) -> Config:
        """Takes from another config where the run belongs, unless this one says so."""
        values = {field.name: getattr(self, field.name) for field in fields(Config)}
        for name in _PLACE:
            if other is not None and values[name] is None:
                values[name] = getattr(other, name)
        return Config(**values)


_PLACE = ("workspace", "project", "external_experiment_id", "external_trial_id")


class DefaultConfig(Config):
    """The older form of the fields of an experiment's config. It emits a FutureWarning.

    Examples:
        >>> import warnings
        >>> from resolute import core_v2
        >>> with warnings.catch_warnings(record=True) as raised:
        ...     warnings.simplefilter("always")
        ...     config = core_v2.DefaultConfig(name="mnist", labels=["laptop"])
        >>> config.fields(), len(raised)
        ({'labels': ['laptop']}, 1)
    """

    def __init__(
        self,
        name: str | None = None,
        hparams: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        description: str | None = None,
        labels: Sequence[str] | None = None,
        checkpoint_storage: str | Mapping[str, Any] | None = None,
        searcher: Mapping[str, Any] | None = None,
        **place: str | None,
    ) -> None:
        warn_of_older_spelling("DefaultConfig")
        super().__init__(
            name=name,
            hparams=hparams,
            data=data,
            description=description,
            labels=labels,
            checkpoint_storage=checkpoint_storage,
            searcher=searcher,
            **place,
        )


class UnmanagedConfig(Config):
    """The older form of the fields that place a run outside of the cluster. It emits a FutureWarning.

    Examples:
        >>> import warnings
        >>> from resolute import core_v2
        >>> with warnings.catch_warnings(record=True) as raised:
        ...     warnings.simplefilter("always")
        ...     config = core_v2.UnmanagedConfig(workspace="vision", external_experiment_id="mnist")
        >>> config.workspace, len(raised)
        ('vision', 1)
    """

    def __init__(
        self,
        workspace: str | None = None,
        project: str | None = None,
        external_experiment_id: str | None = None,
        external_trial_id: str | None = None,
        **others: Any,
    ) -> None:
        warn_of_older_spelling("UnmanagedConfig")
        super().__init__(
            workspace=workspace,
            project=project,
            external_experiment_id=external_experiment_id,
            external_trial_id=external_trial_id,
            **others,
        )


def warn_of_older_spelling(name: str, *, stacklevel: int = 3) -> None:
    """Warns that an older release's spelling is used.

    Args:
        name: What is used.
        stacklevel: How many calls up the user's line is.
    """
    warnings.warn(
        f"{name} is deprecated: pass core_v2.init(config=core_v2.Config(...)), which has the same fields",
        FutureWarning,
        stacklevel=stacklevel,
    )


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
