"""The whole config of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from resolute.contracts.documents.section import (
    Count,
    Flag,
    Int,
    Json,
    Name,
    Number,
    Positive,
    Section,
    SmallCount,
    Text,
)
from resolute_config.sections.batch_systems import Pbs, Slurm
from resolute_config.sections.entrypoint import Entrypoint
from resolute_config.sections.environment import Environment
from resolute_config.sections.hyperparameters import Hyperparameters
from resolute_config.sections.integrations import Integrations
from resolute_config.sections.length import Length, Period
from resolute_config.sections.log_policies import LogPolicies
from resolute_config.sections.mounts import BindMounts
from resolute_config.sections.optimizations import Optimizations, Profiling
from resolute_config.sections.resources import Resources
from resolute_config.sections.searcher import Searcher
from resolute_config.sections.storage import CheckpointStorage
from resolute_config.sections.supervision.guard import Guard
from resolute_config.sections.supervision.hang import Hang
from resolute_config.sections.supervision.on_failure import OnFailure
from resolute_config.sections.supervision.utilization import UtilizationPolicy

MASK = "********"
"""What stands for a secret in a redacted config."""

REMOVED_FIELDS = ("internal", "security", "data_layer", "tensorboard_storage", "retention_policy")
"""Fields of Determined's configs that are read and ignored; shown only when they are given."""

_LONGEST_TIMEOUT = 30 * 86_400
"""Seconds; what takes longer than a month to stop does not stop."""
_LONGEST_GRACE = 3600
"""Seconds; a run that has lost its allocation may hold its slots for this long."""
_LONGEST_RETENTION = 32_767
"""Days."""
_IN_STEPS = (
    "removed; lengths are given as {batches: N}, and scheduling_unit says how often metrics are reported"
)


class RetentionPolicy(Section):
    """The retention of an experiment's logs. It is ignored: the cluster has one period for all logs.

    Attributes:
        log_retention_days: Number of days; -1 for ever.
    """

    log_retention_days: Annotated[Int, Field(ge=-1, le=_LONGEST_RETENTION)] | None = None


class Kerberos(Section):
    """Settings of Kerberos, which are ignored.

    Attributes:
        config_file: Path of a file.
    """

    config_file: Name = Field(description="the path of a file, or no kerberos at all")


class Security(Section):
    """Settings of security, which are ignored.

    Attributes:
        kerberos: Settings of Kerberos.
    """

    kerberos: Kerberos | None = None


class Reproducibility(Section):
    """Settings that make runs reproducible.

    Attributes:
        experiment_seed: Seed of the search, from which the seeds of trials are derived.
    """

    experiment_seed: Annotated[Int, Field(ge=0, le=2**32 - 1)] = Field(
        description="an integer from 0 to 4294967295"
    )


def _without_repetitions(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(labels))


Labels: TypeAlias = Annotated[tuple[Name, ...], AfterValidator(_without_repetitions)]


class ExperimentConfig(Section):
    """A complete config: all layers are merged, all defaults are filled in, and all checks have passed.

    Create it by ``parse_config``: only this function also checks sections against each other.
    ``docs/config.md`` describes each field.
    """

    advice: ClassVar[Mapping[str, str]] = {
        "batches_per_step": _IN_STEPS,
        "log_pattern_policies": "renamed; give the same list as log_policies",
    }

    name: Name = Field(description="a name")
    description: Text | None = None
    entrypoint: Entrypoint | None = None
    searcher: Searcher = Field(description="a map with the search method's name and its metric")
    hyperparameters: Hyperparameters = Field(default_factory=dict)
    checkpoint_storage: CheckpointStorage = Field(
        description="where to keep checkpoints; neither the config nor the cluster's defaults say it"
    )
    checkpoint_policy: Literal["best", "all", "none"] = "best"
    min_validation_period: Period = Length(0, "batches")
    min_checkpoint_period: Period = Length(0, "batches")
    perform_initial_validation: Flag = False
    records_per_epoch: Count = 0
    scheduling_unit: Positive = 100
    max_restarts: SmallCount = 5
    repeat_same_failure: Flag = False
    hang: Hang = Hang()
    guard: Guard | None = None
    utilization_policy: UtilizationPolicy | None = None
    on_failure: OnFailure | None = None
    preemption_timeout: Annotated[Number, Field(ge=0, le=_LONGEST_TIMEOUT)] | None = None
    termination_grace: Annotated[Number, Field(ge=0, le=_LONGEST_GRACE)] | None = None
    reproducibility: Reproducibility = Field(description="the experiment's seed")
    resources: Resources = Resources()
    environment: Environment = Environment()
    bind_mounts: BindMounts = ()
    data: Mapping[str, Json] = Field(default_factory=dict)
    debug: Flag = False
    reports: Literal["warn", "strict"] = "warn"
    labels: Labels = ()
    workspace: Text = ""
    project: Text = ""
    log_policies: LogPolicies = ()
    profiling: Profiling = Profiling()
    optimizations: Optimizations = Optimizations()
    slurm: Slurm = Slurm()
    pbs: Pbs = Pbs()
    integrations: Integrations | None = None
    internal: Json | None = None
    security: Security | None = None
    data_layer: Json | None = None
    tensorboard_storage: Json | None = None
    retention_policy: RetentionPolicy | None = None

    @field_validator("*")
    @classmethod
    def _collect(cls, value: Any, info: ValidationInfo) -> Any:
        # Checks between sections run on the good sections even when others are faulty.
        if info.context is not None and info.field_name is not None:
            info.context[info.field_name] = value
        return value

    def to_dict(self, *, redact: bool = False) -> dict[str, Any]:
        """The whole config as plain data that JSON can hold; ``parse_config`` makes an equal config of it.

        Args:
            redact: Whether secrets (keys, passwords, tokens) are masked. A masked config is for showing only.
        """
        dumped = self.model_dump(mode="json")
        for field in REMOVED_FIELDS:
            if dumped[field] is None:
                del dumped[field]
        if redact:
            _mask(self, dumped)
        return dumped


def _mask(section: Section, dumped: dict[str, Any]) -> None:
    for field in type(section).model_fields:
        if field in section.hidden and dumped.get(field) is not None:
            dumped[field] = MASK
        elif isinstance(value := getattr(section, field), Section):
            _mask(value, dumped[field])
