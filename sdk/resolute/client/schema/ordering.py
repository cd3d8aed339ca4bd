"""The orders of lists. The values of members are those of Determined's JSON, such as ``SORT_BY_ID``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resolute.client.schema.records import ExperimentRecord, ModelRecord

_EPOCH = datetime.fromtimestamp(0, tz=timezone.utc)


class OrderBy(Enum):
    """Direction of a sorted list.

    Examples:
        >>> from resolute import client
        >>> newest = client.list_experiments(client.ExperimentSortBy.ID, client.OrderBy.DESCENDING)[0]
        >>> newest.id > 1
        True
    """

    ASCENDING = "ORDER_BY_ASC"
    ASC = "ORDER_BY_ASC"  # noqa: PIE796 - an alias
    DESCENDING = "ORDER_BY_DESC"
    DESC = "ORDER_BY_DESC"  # noqa: PIE796 - an alias


# Names of older releases.
CheckpointOrderBy = ExperimentOrderBy = ModelOrderBy = TrialOrderBy = OrderBy


class ExperimentSortBy(Enum):
    """The keys by which experiments can be sorted.

    Examples:
        >>> from resolute import client
        >>> found = client.list_experiments(client.ExperimentSortBy.ID, client.OrderBy.ASCENDING)
        >>> [experiment.id for experiment in found][:2]
        [1, 2]
    """

    ID = "SORT_BY_ID"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    NUM_TRIALS = "SORT_BY_NUM_TRIALS"
    PROGRESS = "SORT_BY_PROGRESS"
    USER = "SORT_BY_USER"
    FORKED_FROM = "SORT_BY_FORKED_FROM"
    """Has no effect: lists do not tell what an experiment was made from."""
    RESOURCE_POOL = "SORT_BY_RESOURCE_POOL"
    """Has no effect: lists do not tell pools."""
    PROJECT_ID = "SORT_BY_PROJECT_ID"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"
    """Bytes of all checkpoints."""
    CHECKPOINT_COUNT = "SORT_BY_CHECKPOINT_COUNT"
    SEARCHER_METRIC_VAL = "SORT_BY_SEARCHER_METRIC_VAL"
    """The best validation of its trials."""


class ModelSortBy(Enum):
    """The keys by which models can be sorted.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("birds")
        >>> [one.name for one in client.list_models(client.ModelSortBy.CREATION_TIME, name="birds")]
        ['birds']
    """

    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    CREATION_TIME = "SORT_BY_CREATION_TIME"
    LAST_UPDATED_TIME = "SORT_BY_LAST_UPDATED_TIME"
    NUM_VERSIONS = "SORT_BY_NUM_VERSIONS"
    WORKSPACE = "SORT_BY_WORKSPACE"


class TrialSortBy(Enum):
    """The keys by which trials can be sorted.

    Examples:
        >>> from resolute import client
        >>> experiment = client.get_experiment(2)
        >>> trials = experiment.list_trials(client.TrialSortBy.DURATION, client.OrderBy.ASCENDING)
        >>> [trial.id for trial in trials]
        [1]
    """

    ID = "SORT_BY_ID"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED"
    """Steps at the latest checkpoint."""
    DURATION = "SORT_BY_DURATION"
    RESTARTS = "SORT_BY_RESTARTS"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"
    """Bytes of all checkpoints."""
    LOG_RETENTION_DAYS = "SORT_BY_LOG_RETENTION_DAYS"
    """Has no effect: logs of all trials are kept for as long as the operator sets."""


class CheckpointSortBy(Enum):
    """The keys by which checkpoints can be sorted.

    Examples:
        >>> from resolute import client
        >>> trial = client.get_trial(1)
        >>> found = trial.list_checkpoints(client.CheckpointSortBy.END_TIME, client.OrderBy.DESCENDING)
        >>> [checkpoint.state.name for checkpoint in found]
        ['COMPLETED']
    """

    UUID = "SORT_BY_UUID"
    TRIAL_ID = "SORT_BY_TRIAL_ID"
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER"
    """Steps completed."""
    START_TIME = "SORT_BY_START_TIME"
    """When the upload began."""
    END_TIME = "SORT_BY_END_TIME"
    """When it was committed."""
    STATE = "SORT_BY_STATE"
    SEARCHER_METRIC = "SORT_BY_SEARCHER_METRIC"
    """The metric that the experiment decides by."""


EXPERIMENT_FIELDS: Mapping[ExperimentSortBy, str] = {
    ExperimentSortBy.ID: "number",
    ExperimentSortBy.NAME: "name",
    ExperimentSortBy.START_TIME: "create_time",
    ExperimentSortBy.END_TIME: "end_time",
    ExperimentSortBy.STATE: "state",
    ExperimentSortBy.PROGRESS: "progress",
    ExperimentSortBy.USER: "owner_name",
    ExperimentSortBy.FORKED_FROM: "number",
    ExperimentSortBy.RESOURCE_POOL: "number",
}
"""What the service sorts experiments by, as its API calls it. The client sorts by all else."""

EXPERIMENT_KEYS: Mapping[ExperimentSortBy, Callable[[ExperimentRecord], Any]] = {
    ExperimentSortBy.DESCRIPTION: lambda record: record.description,
    ExperimentSortBy.NUM_TRIALS: lambda record: record.trial_count,
    ExperimentSortBy.PROJECT_ID: lambda record: record.project_id,
}
"""What the client sorts experiments by without asking for more."""

MODEL_KEYS: Mapping[ModelSortBy, Callable[[ModelRecord], Any]] = {
    ModelSortBy.NAME: lambda record: record.name,
    ModelSortBy.DESCRIPTION: lambda record: record.description,
    ModelSortBy.CREATION_TIME: lambda record: record.create_time or _EPOCH,
    ModelSortBy.LAST_UPDATED_TIME: lambda record: record.update_time or _EPOCH,
    ModelSortBy.NUM_VERSIONS: lambda record: record.version_count,
    ModelSortBy.WORKSPACE: lambda record: record.workspace,
}
"""What the client sorts models by."""

TRIAL_FIELDS: Mapping[TrialSortBy, str] = {
    TrialSortBy.ID: "number",
    TrialSortBy.START_TIME: "create_time",
    TrialSortBy.END_TIME: "end_time",
    TrialSortBy.STATE: "state",
    TrialSortBy.BEST_VALIDATION_METRIC: "best_validation",
    TrialSortBy.LATEST_VALIDATION_METRIC: "last_validation",
    TrialSortBy.BATCHES_PROCESSED: "steps_completed",
    TrialSortBy.RESTARTS: "restarts",
    TrialSortBy.LOG_RETENTION_DAYS: "number",
}
"""The same for trials."""


def order_of(field: str, order_by: OrderBy | None) -> str:
    """Writes an order as requests of lists take it; None is ascending."""
    return f"{field} desc" if order_by is OrderBy.DESCENDING else field


def check_sorting(sort_by: object, order_by: object) -> None:
    """Makes sure that a sort key of checkpoints is one, and comes with its direction.

    Raises:
        AssertionError: Only one of them is given.
        ValueError: It is neither an attribute nor the name of a metric.
    """
    if (sort_by is None) != (order_by is None):
        raise AssertionError("sort_by and order_by must be given together, or neither of them")
    if sort_by is not None and not isinstance(sort_by, (CheckpointSortBy, str)):
        raise ValueError(f"sort_by is {sort_by!r}; a CheckpointSortBy or the name of a metric was expected")
