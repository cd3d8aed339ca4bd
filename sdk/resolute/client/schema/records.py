"""Records of the services, as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolute.client.schema.states import (
    CheckpointState,
    ExperimentKind,
    ExperimentState,
    LogLevel,
    RunOutcome,
    TrialState,
)
from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.contracts.spool.media_formats import MediaKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """The git work tree that code was submitted from."""

    git_commit: str
    git_branch: str
    """Empty for none."""
    git_diff: str
    """How the submitted files differed from the commit; empty for no difference."""
    git_diff_truncated: bool
    """Whether the diff was longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRecord:
    """An experiment at one moment."""

    id: int
    """The small number that people use."""
    uuid: str
    name: str
    description: str
    labels: tuple[str, ...]
    state: ExperimentState
    activity: str
    """What an ACTIVE experiment is doing: QUEUED, STARTING or RUNNING; empty otherwise."""
    archived: bool
    owner: str
    owner_id: int | None = None
    """None for no user."""
    workspace: str
    project: str
    workspace_id: int = 0
    project_id: int = 0
    progress: float
    """Done share in [0, 1]."""
    config: dict[str, Any] | None
    """The whole config, defaults filled in; None in lists and watches."""
    create_time: datetime | None
    end_time: datetime | None
    trial_count: int
    searcher_name: str
    searcher_metric: str
    smaller_is_better: bool
    failure: str
    """Why it is in ERROR; empty otherwise."""
    revision: int
    model_definition_size: int
    """Compressed bytes."""
    unmanaged: bool = False
    """Whether its trials run outside of the cluster."""
    external_id: str = ""
    """What names it there; empty for none."""
    explanation: str = ""
    """Why the first of its waiting trials waits; empty when none does."""
    warning: str = ""
    """What is wrong with it although it runs or has ended well; empty otherwise."""
    importing: bool = False
    """Whether its import from another cluster has begun and is not whole."""
    notes: str = ""
    """What people noted of it; empty in lists and watches."""
    etag: str = ""
    """Changes whenever a person changes it."""
    source: SourceRecord | None = None
    """Where its code came from; None when that is not known, and in lists and watches."""
    kind: ExperimentKind = ExperimentKind.SEARCH
    """What it is for."""
    start_time: datetime | None = None
    """When one of its trials first got slots; None before."""
    estimated_end_time: datetime | None = None
    """When it will be done, as fast as it was so far; None until that is known, and unless it runs."""
    steps_per_second: float | None = None
    """Of all its trials that run, together; None until that is known, and unless it runs."""
    checkpoint_directories: tuple[str, ...] = ()
    """Where its runs kept checkpoints and event files, beside the storage of its config; empty in lists."""

    @property
    def shown_state(self) -> str:
        """The activity of an active experiment, else its state."""
        return self.activity or self.state.name

    @property
    def shown_progress(self) -> str:
        """Its progress in percent; empty for a failed one: trials that failed count as far as they came."""
        return "" if self.state is ExperimentState.ERROR else f"{self.progress:.0%}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One attempt to execute a trial."""

    run: int
    """Number within the trial, from 1."""
    allocation_id: str
    outcome: RunOutcome
    exit_code: int | None
    """None while it runs and when it is unknown."""
    start_time: datetime | None
    end_time: datetime | None
    slot_ids: tuple[int, ...]
    failure: str
    """The first failing rank's last words."""
    log_policies: tuple[str, ...]
    """What log policies did because of its lines."""
    initialize_time: datetime | None = None
    """When its script had initialized the Core API; None if it never did, or has not ended."""
    gpu_usage: GpuUsage | None = None
    """What its GPUs did; None if nothing was measured, or it has not ended."""
    trace_id: str = ""
    """The trace of OpenTelemetry of which its spans are."""
    lost_steps: int | None = None
    """Steps that the next run repeats; None if it has not ended, no run follows it, or that is not known."""
    left_out: tuple[str, ...] = ()
    """What was left out of its reports: one text for each kind, with how often. Empty until it has ended."""
    hang: str = ""
    """What kept it from moving on when it last stood still; empty if it always moved."""
    guard: str = ""
    """What the guard of its experiment found in its reports and did about it; empty if all were good."""
    idle: str = ""
    """How little its GPUs did when its ``utilization_policy`` found them idle; empty if it never did."""
    hold_time: datetime | None = None
    """Until when the files that it left are held; None if they are not."""


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """A validation, with the value of the experiment's metric."""

    value: float | None
    """None when it was NaN or infinite."""
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial at one moment."""

    id: int
    """The small number that people use."""
    uuid: str
    experiment_id: int
    experiment_uuid: str
    trial_key: str
    """UUID by which its search knows it."""
    state: TrialState
    hparams: dict[str, Any]
    seed: int
    restarts: int
    run: int
    """Number of the latest run; zero before the first."""
    status: str
    """What it is doing, as its own code last reported."""
    explanation: str
    """Why it waits or failed."""
    latest_checkpoint: str
    """UUID; empty for none."""
    steps_completed: int
    """Steps at that checkpoint."""
    create_time: datetime | None
    end_time: datetime | None
    revision: int
    runs: tuple[RunRecord, ...]
    """Empty in lists and watches."""
    pids: tuple[int, ...]
    excluded_nodes: tuple[int, ...]
    """Nodes that log policies keep it from."""
    endpoints: tuple[str, ...] = ()
    """Where programs of its latest run listen, as ``host:port``; empty in lists and watches."""
    best_validation: ValidationRecord | None = None
    last_validation: ValidationRecord | None = None
    lost_steps: int = 0
    """Steps that its runs left to the next ones to repeat, as far as they are known."""
    external_id: str = ""
    """What names it outside of the cluster; empty for none."""
    reported_steps: int | None = None
    """Steps of its last report of training or validation; None before the first."""
    report_time: datetime | None = None
    """When that report was made."""
    steps_per_second: float | None = None
    """About its last half minute; None before its second report."""
    estimated_end_time: datetime | None = None
    """When it will have trained as long as its search lets the longest trial; None unless that is known."""
    run_seconds: float = 0.0
    """Seconds for which runs that have ended held their slots."""
    run_start_time: datetime | None = None
    """When its current run got its slots; None without one."""
    labels: tuple[str, ...] = ()
    notes: str = ""
    """Markdown; empty in lists and watches."""
    etag: str = ""
    """Changes with every change of labels or notes."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a checkpoint; directories end in "/" and have size zero."""

    path: str
    size: int
    digest: str
    """``algorithm:hex``; empty for directories."""
    home: str = ""
    """Where a bucket has its bytes, ``UUID/path``, when an earlier checkpoint sent them; else empty."""


@dataclass(frozen=True, slots=True)
class DirectoryStorage:
    """Checkpoints are subdirectories of a directory."""

    path: str


@dataclass(frozen=True, slots=True)
class BucketStorage:
    """Checkpoints are objects of a bucket."""

    bucket: str
    """Its name; for Azure that of the container."""
    prefix: str
    endpoint_url: str
    """Address of the store; empty for the provider's own, for Azure for the account of the cluster."""
    type: str = "s3"
    """``s3``, ``gcs`` or ``azure``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """A committed checkpoint."""

    uuid: str
    state: CheckpointState
    trial_uuid: str
    experiment_uuid: str
    run: int
    steps_completed: int
    files: tuple[FileRecord, ...]
    metadata: dict[str, Any]
    create_time: datetime | None
    commit_time: datetime | None
    total_size: int
    storage: DirectoryStorage | BucketStorage | None
    file_count: int = 0
    """How many files and directories there are; lists leave out files where there are very many."""
    pinned: bool = False
    """Whether nothing deletes it until it is unpinned."""
    inherited: bool = False
    """Whether it was written before the cluster was restored or copied; nothing removes its files until the
    operator takes them over."""
    keep_reasons: tuple[str, ...] = ()
    """Why the policy of the experiment keeps it, such as ``trial_best``; empty before it decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDeliveryRecord:
    """An alert on its way to an endpoint."""

    key: str
    endpoint: str
    title: str
    create_time: datetime | None
    deliver_time: datetime | None
    """None before it was delivered."""
    due_time: datetime | None
    """When it is sent again; None once it was delivered or given up."""
    attempts: int
    problem: str
    """Why the last attempt failed; empty if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRecord:
    """A secret for scripts, without its value."""

    name: str
    create_time: datetime | None
    """When it was first set."""
    update_time: datetime | None
    """When its value was last set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """A name under which checkpoints are kept as versions."""

    uuid: str
    id: int
    """Number for people."""
    name: str
    description: str
    notes: str
    labels: tuple[str, ...]
    metadata: dict[str, Any]
    workspace: str
    workspace_id: int | None = None
    """None for a model of no workspace."""
    owner: str
    owner_id: int | None = None
    """None for no user."""
    archived: bool
    version_count: int
    create_time: datetime | None
    update_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersionRecord:
    """A checkpoint as a version of a model."""

    model_uuid: str
    model_id: int
    """Number of the model."""
    model_name: str
    version: int
    checkpoint: CheckpointRecord
    """Without its files."""
    name: str
    comment: str
    notes: str
    labels: tuple[str, ...]
    metadata: dict[str, Any]
    owner: str
    create_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRecord:
    """One line of a trial's log."""

    line_id: int
    """Order of arrival over the whole service."""
    time: datetime | None
    message: str
    level: LogLevel
    rank: int | None
    stdtype: str
    """Either "stdout" or "stderr"; empty for lines of the platform."""
    run: int
    trial_uuid: str
    origin: str
    container: str
    agent: str
    """Machine it was written on; empty when unknown."""


@dataclass(frozen=True, slots=True)
class MediaRecord:
    """One image, histogram, text, table, sound or figure that a trial logged."""

    media_id: int
    """Order of arrival over the whole cluster."""
    trial_uuid: str
    run: int
    name: str
    kind: MediaKind
    steps_completed: int
    log_time: datetime | None
    caption: str
    content_type: str
    """Media type, such as "image/png"."""
    size: int
    """Bytes of the content."""
    digest: str
    """SHA-256 of the content, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class BestRecord:
    """The best validation of a trial."""

    trial_uuid: str
    metric: str
    value: float
    steps: int


@dataclass(frozen=True, slots=True)
class TrialMetrics:
    """One report of a trial.

    Examples:
        >>> from resolute import client
        >>> report = next(client.iter_trials_metrics([1], "validation"))
        >>> report.steps_completed, report.metrics
        (1, {'loss': 0.5})
    """

    trial_id: int
    trial_run_id: int
    steps_completed: int
    end_time: datetime | None
    metrics: dict[str, Any]
    group: str
    batch_metrics: list[dict[str, Any]] | None = None
    """Always None: metrics of single batches are not stored."""

    @property
    def total_batches(self) -> int:
        """Another name of ``steps_completed``."""
        return self.steps_completed


class TrainingMetrics(TrialMetrics):
    """One report of the group ``training``.

    Examples:
        >>> from resolute import client
        >>> [report.steps_completed for report in client.stream_trials_training_metrics([1])]
        []
    """

    __slots__ = ()


class ValidationMetrics(TrialMetrics):
    """One report of the group ``validation``.

    Examples:
        >>> from resolute import client
        >>> report = next(client.stream_trials_validation_metrics([1]))
        >>> isinstance(report, client.ValidationMetrics)
        True
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """A summary of the values of one metric of one trial.

    Examples:
        >>> from resolute import client
        >>> values = {"count": 2, "mean": 0.6, "min": 0.5, "max": 0.7, "last": 0.5, "last_steps": 20}
        >>> loss = client.MetricSummary(trial_uuid="", group="validation", name="loss", **values)
        >>> f"{loss.name} fell to {loss.last} at step {loss.last_steps}"
        'loss fell to 0.5 at step 20'
    """

    trial_uuid: str
    group: str
    name: str
    count: int
    mean: float | None
    min: float | None
    max: float | None
    last: Any
    last_steps: int


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One value of a metric."""

    steps: int
    value: float
    time: float
    """Unix time."""


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """One slot of the cluster."""

    slot_id: int
    kind: str
    allocation_id: str
    trial_id: int
    node: int = 0
    """Its machine."""
    disabled: bool = False
    """Whether no run starts on it."""
    draining: bool = False
    """Of a disabled one that is held: whether the run goes on to its end."""
    resource_pool: str = "default"
    """Its pool, in which its number and that of its machine are unique."""

    @property
    def machine_name(self) -> str:
        """What names its machine in the whole cluster."""
        return f"{self.resource_pool}/{self.node}"


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A resource pool."""

    name: str
    placed_by_engine: bool = False
    """Whether its engine gives out its slots by itself: they cannot be disabled here."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The cluster as a whole."""

    cluster_id: str
    version: str
    slots: tuple[SlotRecord, ...]
    queued_trials: int
    problems: tuple[str, ...] = ()
    """What keeps it from working, such as a full disk, each with its remedy."""
    resource_pools: tuple[PoolRecord, ...] = ()
    """All pools, the default one first."""


@dataclass(frozen=True, slots=True)
class TemplateRecord:
    """A named part of a config."""

    name: str
    config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPoliciesRecord:
    """The policies that admins set for configs of experiments, in the cluster or in one workspace."""

    invariant_config: dict[str, Any]
    """Part of a config, which wins over what configs say; empty for nothing."""
    max_slots: int | None
    """Most slots of a trial, and of an experiment; None is no limit."""
    priority_limit: int | None
    """The most urgent priority, from 1 (most urgent) to 99; None is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """An experiment that has not ended, in the queue."""

    experiment_id: int
    """The small number that people use."""
    name: str
    owner: str
    state: ExperimentState
    priority: int
    """Urgency from 1 (most) to 99."""
    weight: float
    """Share of slots among experiments of the same priority."""
    max_slots: int | None
    """Most slots that it may hold; None for no limit."""
    slots_per_trial: int
    held_slots: int
    queued_trials: int
    allocated_trials: int
    """Trials that hold slots."""
    explanation: str
    """Why its first waiting trial waits; empty when none does."""
    progress: float = 0.0
    """Done share in [0, 1]."""
    estimated_end_time: datetime | None = None
    """When it will be done, as fast as it was so far; None until that is known, and unless it runs."""
    steps_per_second: float | None = None
    """Of all its trials that run, together; None until that is known, and unless it runs."""
    kind: ExperimentKind = ExperimentKind.SEARCH
    """What it is for."""
