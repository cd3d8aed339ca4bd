"""Fields that are accepted but have no effect here; a submission that sets one gets a warning.

The effect of a field depends on the engine that runs the trials. The table below is for the local engine;
pools of other engines name the rows that do not apply to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.documents.section import Section
from resolute_config.experiment import ExperimentConfig
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_config.sections.entrypoint import runs_trial_class
from resolute_config.sections.searcher import HalvingSearcher
from resolute_config.sections.storage import AzureStorage, S3Storage, SharedFsStorage


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """The warning about a field that is set and has no effect.

    Attributes:
        path: Dotted path of the field.
        reason: The reason, as a whole clause.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        """The warning on one line."""
        return f"{self.path} has no effect: {self.reason}"


def _always(config: ExperimentConfig) -> bool:  # noqa: ARG001  # every condition has the same signature
    return True


def _is_command(config: ExperimentConfig) -> bool:
    return not runs_trial_class(config.entrypoint)


def _is_trial_class(config: ExperimentConfig) -> bool:
    return runs_trial_class(config.entrypoint)


def _is_timed(config: ExperimentConfig) -> bool:
    return isinstance(config.searcher, HalvingSearcher) and config.searcher.max_time is not None


def _has_webhooks(config: ExperimentConfig) -> bool:
    return config.integrations is not None and config.integrations.webhooks is not None


def _has_shared_fs(config: ExperimentConfig) -> bool:
    return isinstance(config.checkpoint_storage, SharedFsStorage)


def _has_bucket(config: ExperimentConfig) -> bool:
    return isinstance(config.checkpoint_storage, S3Storage)


def _has_container(config: ExperimentConfig) -> bool:
    return isinstance(config.checkpoint_storage, AzureStorage)


@dataclass(frozen=True, slots=True)
class Ineffective:
    """A row of the table: a field or section without effect.

    Attributes:
        path: Dotted path.
        reason: The reason, as a whole clause.
        when: The configs to which the row applies.
    """

    path: str
    reason: str
    when: Callable[[ExperimentConfig], bool] = _always


_NO_CONTAINER = "trials run as processes of this host, not in containers"
_NOT_BY_ENGINE = "the engine of its pool does not do it"
_NO_POOLS = "this host is the only node, there are no pools to choose from"
_NO_BATCH_SYSTEM = "trials do not run under a batch system"
_ONLY_TRIAL_CLASS = "only the Trial APIs read it, and the entrypoint is a command of its own"
_KEYS_OF_SERVICE = (
    "the checkpoints service has its own credentials, so that no trial holds any; these are not kept"
)
_ONLY_ADDRESS = (
    "beyond the address in it nothing is kept, since the checkpoints service has its own credentials"
)
_ONE_RETENTION = (
    "logs of all experiments are kept alike, for as long as RESOLUTE_LOGS_RETENTION_DAYS of the cluster says"
)
_OLD = "the field is of old releases and is ignored"

LOCAL_PROCESSES: tuple[Ineffective, ...] = (
    *(
        Ineffective(f"environment.{name}", _NO_CONTAINER)
        for name in (
            "image",
            "ports",
            "proxy_ports",
            "force_pull_image",
            "registry_auth",
            "add_capabilities",
            "drop_capabilities",
        )
    ),
    Ineffective("environment.pod_spec", "trials do not run on Kubernetes"),
    Ineffective("bind_mounts", _NO_CONTAINER),
    Ineffective("resources.devices", _NO_CONTAINER),
    Ineffective("resources.shm_size", _NO_CONTAINER),
    Ineffective("resources.resource_pool", _NO_POOLS),
    Ineffective("resources.native_parallel", _OLD),
    Ineffective("resources.agent_label", _OLD),
    Ineffective("checkpoint_storage.access_key", _KEYS_OF_SERVICE, _has_bucket),
    Ineffective("checkpoint_storage.secret_key", _KEYS_OF_SERVICE, _has_bucket),
    Ineffective("checkpoint_storage.credential", _KEYS_OF_SERVICE, _has_container),
    Ineffective("checkpoint_storage.connection_string", _ONLY_ADDRESS, _has_container),
    Ineffective("checkpoint_storage.propagation", _NO_CONTAINER),
    Ineffective("checkpoint_storage.tensorboard_path", _OLD),
    Ineffective("checkpoint_storage.container_path", _OLD, _has_shared_fs),
    *(Ineffective(name, _OLD) for name in ("internal", "security", "data_layer", "tensorboard_storage")),
    Ineffective("retention_policy", _ONE_RETENTION),
    Ineffective("integrations.webhooks.webhook_id", "endpoints of alerts have names", _has_webhooks),
    Ineffective("slurm", _NO_BATCH_SYSTEM),
    Ineffective("pbs", _NO_BATCH_SYSTEM),
    *(
        Ineffective(f"profiling.{name}", "the machine is sampled from the beginning of training to its end")
        for name in ("begin_on_batch", "end_after_batch", "sync_timings")
    ),
    Ineffective(
        "optimizations.mixed_precision",
        "a Trial class asks for it in its code, by context.experimental.use_amp() before wrap_model()",
        _is_trial_class,
    ),
    Ineffective("optimizations.grad_updates_size_file", _OLD, _is_trial_class),
    Ineffective("searcher.stop_once", "a search by max_time always stops trials for good", _is_timed),
    *(
        Ineffective(name, _ONLY_TRIAL_CLASS, _is_command)
        for name in (
            "checkpoint_policy",
            "min_validation_period",
            "min_checkpoint_period",
            "perform_initial_validation",
            "records_per_epoch",
            "scheduling_unit",
            "profiling.enabled",
            "optimizations",
        )
    ),
)
"""What has no effect when trials are processes of one host."""


_REQUIRED_FIELDS = {
    "name": "any",
    "entrypoint": "any",
    "searcher": {"name": "single", "metric": "any"},
    "reproducibility": {"experiment_seed": 0},
}
_SOME_STORAGE = {"checkpoint_storage": {"type": "directory", "container_path": "/any"}}


def ineffective_fields(
    config: ExperimentConfig,
    *,
    cluster_defaults: Mapping[str, Any] | None = None,
    table: Sequence[Ineffective] = LOCAL_PROCESSES,
    effective: Collection[str] = (),
) -> list[ConfigWarning]:
    """Tell which fields the user set that change nothing.

    A field counts as set when its value is not the one that it has when the user says nothing, so that
    configs that were stored and read again give the same answer.

    Args:
        config: The complete config.
        cluster_defaults: The lowest layer that ``config`` was made of.
        table: What has no effect for processes of this machine.
        effective: Paths of the rows that do not hold, since the engine that runs the trials honours them.

    Raises:
        ConfigError: The cluster's defaults are at fault.
    """
    layers = (Layer("cluster defaults", cluster_defaults or {}), Layer("", _SOME_STORAGE))
    baseline = parse_config(_REQUIRED_FIELDS, layers=layers)
    warnings: list[ConfigWarning] = []
    for row in table:
        if row.path not in effective and row.when(config):
            # A pool that honours some of these fields has containers.
            reason = _NOT_BY_ENGINE if effective and row.reason == _NO_CONTAINER else row.reason
            warnings += (ConfigWarning(path, reason) for path in _set_by_user(row.path, config, baseline))
    return warnings


def _set_by_user(path: str, section: Section, baseline: Section | None) -> list[str]:
    *above, name = path.split(".")
    for step in above:
        section, baseline = getattr(section, step), getattr(baseline, step, None)
    return _changes(path, name, section, baseline) if name in type(section).model_fields else []


def _changes(path: str, name: str, section: Section, baseline: Section | None) -> list[str]:
    """Paths of what differs: the single fields of a section, or the section when all its fields do."""
    value = getattr(section, name)
    if type(baseline) is type(section):
        usual = getattr(baseline, name)
    else:
        usual = type(section).model_fields[name].get_default(call_default_factory=True)
    if not isinstance(value, Section) or type(usual) is not type(value):
        return [] if value == usual else [path]
    fields = type(value).model_fields
    below = [change for field in fields for change in _changes(f"{path}.{field}", field, value, usual)]
    return [path] if len(below) == len(fields) else below
