"""How lists can be sorted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class OrderBy(Enum):
    """Direction of a sorted list.

    Examples:
        >>> from resolute import client
        >>> newest = client.list_experiments(client.ExperimentSortBy.ID, client.OrderBy.DESCENDING)[0]
        >>> newest.id > 1
        True
    """

    ASCENDING = "ASCENDING"
    ASC = "ASCENDING"  # noqa: PIE796 - an alias
    DESCENDING = "DESCENDING"
    DESC = "DESCENDING"  # noqa: PIE796 - an alias


# Names of older releases.
CheckpointOrderBy = ExperimentOrderBy = ModelOrderBy = TrialOrderBy = OrderBy


class ExperimentSortBy(Enum):
    """What experiments can be sorted by.

    Examples:
        >>> from resolute import client
        >>> found = client.list_experiments(client.ExperimentSortBy.ID, client.OrderBy.ASCENDING)
        >>> [experiment.id for experiment in found][:2]
        [1, 2]
    """

    ID = "ID"
    NAME = "NAME"
    DESCRIPTION = "DESCRIPTION"
    START_TIME = "START_TIME"
    END_TIME = "END_TIME"
    STATE = "STATE"
    NUM_TRIALS = "NUM_TRIALS"
    PROGRESS = "PROGRESS"
    USER = "USER"
    FORKED_FROM = "FORKED_FROM"
    """Has no effect: lists do not tell what an experiment was made from."""
    RESOURCE_POOL = "RESOURCE_POOL"
    """Has no effect: lists do not tell pools."""
    PROJECT_ID = "PROJECT_ID"
    CHECKPOINT_SIZE = "CHECKPOINT_SIZE"
    """Bytes of all checkpoints."""
    CHECKPOINT_COUNT = "CHECKPOINT_COUNT"
    SEARCHER_METRIC_VAL = "SEARCHER_METRIC_VAL"
    """The best validation of its trials."""


class ModelSortBy(Enum):
    """What models can be sorted by.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("birds")
        >>> [one.name for one in client.list_models(client.ModelSortBy.CREATION_TIME, name="birds")]
        ['birds']
    """

    NAME = "NAME"
    DESCRIPTION = "DESCRIPTION"
    CREATION_TIME = "CREATION_TIME"
    LAST_UPDATED_TIME = "LAST_UPDATED_TIME"
    NUM_VERSIONS = "NUM_VERSIONS"
    WORKSPACE = "WORKSPACE"


class TrialSortBy(Enum):
    """What trials can be sorted by.

    Examples:
        >>> from resolute import client
        >>> experiment = client.get_experiment(2)
        >>> trials = experiment.list_trials(client.TrialSortBy.DURATION, client.OrderBy.ASCENDING)
        >>> [trial.id for trial in trials]
        [1]
    """

    ID = "ID"
    START_TIME = "START_TIME"
    END_TIME = "END_TIME"
    STATE = "STATE"
    BEST_VALIDATION_METRIC = "BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "BATCHES_PROCESSED"
    """Steps at the latest checkpoint."""
    DURATION = "DURATION"
    RESTARTS = "RESTARTS"
    CHECKPOINT_SIZE = "CHECKPOINT_SIZE"
    """Bytes of all checkpoints."""
    LOG_RETENTION_DAYS = "LOG_RETENTION_DAYS"
    """Has no effect: logs of all trials are kept for as long as the operator sets."""


class CheckpointSortBy(Enum):
    """What checkpoints can be sorted by.

    Examples:
        >>> from resolute import client
        >>> trial = client.get_trial(1)
        >>> found = trial.list_checkpoints(client.CheckpointSortBy.END_TIME, client.OrderBy.DESCENDING)
        >>> [checkpoint.state.name for checkpoint in found]
        ['COMPLETED']
    """

    UUID = "UUID"
    TRIAL_ID = "TRIAL_ID"
    BATCH_NUMBER = "BATCH_NUMBER"
    """Steps completed."""
    START_TIME = "START_TIME"
    """When the upload began."""
    END_TIME = "END_TIME"
    """When it was committed."""
    STATE = "STATE"
    SEARCHER_METRIC = "SEARCHER_METRIC"
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
