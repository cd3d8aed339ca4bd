"""Deletes the checkpoints of an experiment that its config does not keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.contracts.times import to_timestamp
from resolute.errors import NotFoundError, ResoluteError, UnavailableError
from resolute_experiments.clients import Clients
from resolute_experiments.guard import guarded_trials
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.engine import Database

_PAGE = 1000
_TRIALS = 100
"""Most trials that one call may name."""
_DEADLINE = 60.0
_ALL = 2**31 - 1
_BEING_READ = "held"
"""Among the reasons for which the registry keeps a checkpoint."""
POLICY = ("save_experiment_best", "save_trial_best", "save_trial_latest")
"""Names of the numbers that a policy has."""
Unreported = Callable[[Experiment], Awaitable[Sequence[str]]]
"""Names the allocations where an experiment runs of which reports have not all arrived."""
_log = structlog.get_logger("retention")


async def trials_awaiting_reports(
    experiment: Experiment, *, unreported: Unreported, database: Database
) -> frozenset[str]:
    """Names the trials of an experiment of which reports have not all arrived; all while it is unknown."""
    try:
        waiting = await unreported(experiment)
    except UnavailableError as failure:
        _log.warning(
            "it is not known which reports are undelivered", experiment=experiment.number, reason=str(failure)
        )
        return await database.read(lambda connection: trials.ids_of(connection, experiment.id))
    if not waiting:
        return frozenset()
    return await database.read(lambda connection: runs.trials_of(connection, experiment.id, waiting))


async def apply_retention(
    experiment: Experiment, *, late: Collection[str], database: Database, clients: Clients
) -> bool:
    """Has checkpoints deleted by the policy of an experiment all of whose trials have ended. Safe to repeat.

    A refusal is logged and keeps everything: an experiment ends nevertheless.

    Args:
        experiment: The experiment.
        late: Trials of which reports have not all arrived; their checkpoints stay.
        database: Knows what other trials start from.
        clients: The services that know checkpoints and metrics.

    Returns:
        Whether some stay only because they are being read, or were a moment ago: to be repeated later.

    Raises:
        UnavailableError: A service is away; to be repeated.
    """
    try:
        deleted = len(
            await collect(experiment, policy={}, late=late, preview=False, database=database, clients=clients)
        )
    except UnavailableError:
        raise
    except ResoluteError as error:
        _log.warning("checkpoints are all kept", experiment=experiment.number, reason=str(error))
        return False
    if deleted:
        _log.info("checkpoints expire", experiment=experiment.number, checkpoints=deleted)
    listed = await _checkpoints(experiment.id, (), clients)
    return any(list(checkpoint.keep_reasons) == [_BEING_READ] for checkpoint in listed)


async def collect(
    experiment: Experiment,
    *,
    policy: Mapping[str, int],
    late: Collection[str],
    preview: bool,
    database: Database,
    clients: Clients,
    training: Collection[str] = (),
) -> Sequence[str]:
    """Has the checkpoints deleted that a policy does not keep. Safe to repeat.

    Args:
        experiment: The experiment.
        policy: How many stay, by the names of the config; what is missing is as the config says.
        late: Trials of which reports have not all arrived: their checkpoints stay, as the best is unknown.
        preview: Whether to only find out which they are.
        database: Knows what other trials start from.
        clients: The services that know checkpoints and metrics.
        training: While trials run, those that have committed since the last time; their values are read,
            those of the others are known. Empty reads the values of all trials, which have ended.

    Returns:
        UUIDs of the checkpoints that are deleted, or would be.

    Raises:
        UnavailableError: A service is away; to be repeated.
    """
    listed = await _checkpoints(experiment.id, training, clients)
    if not listed:
        return ()
    if late:
        _log.warning("checkpoints stay until reports arrive", experiment=experiment.number, trials=len(late))
    storage, searcher = experiment.config["checkpoint_storage"], experiment.config["searcher"]
    steps, seconds = _milestones(experiment.config)
    rules = checkpoints_pb2.RetentionRules(
        smaller_is_better=searcher["smaller_is_better"],
        ranked_checkpoint_ids=[checkpoint.checkpoint_id for checkpoint in listed],
        awaited_trial_ids=sorted(late),
        keep_restorable=bool(training),
        keep_every_steps=steps,
        keep_every_seconds=seconds,
        **{name: policy.get(name, storage[name]) for name in POLICY},
    )
    if training:
        good = await database.read(lambda c: guarded_trials.good_steps(c, experiment.id))
        rules.good_steps.extend(
            checkpoints_pb2.RetentionRules.GoodSteps(trial_id=trial_id, steps=steps)
            for trial_id, steps in good.items()
        )
    for trial_id, wanted in _steps(listed).items():
        rules.validations.extend(await _validations(trial_id, searcher["metric"], wanted, clients))
    foreseen = checkpoints_pb2.PreviewRetentionRequest(experiment_id=experiment.id, rules=rules)
    due = (await clients.checkpoints.PreviewRetention(foreseen, timeout=_DEADLINE)).checkpoint_ids
    sources = await database.read(lambda c: _sources(c, set(due))) if due else []
    going = [checkpoint_id for checkpoint_id in due if checkpoint_id not in sources]
    if preview:
        return tuple(going)
    rules.kept_checkpoint_ids.extend(sources)
    request = checkpoints_pb2.ApplyRetentionRequest(
        experiment_id=experiment.id, rules=rules, deletable_checkpoint_ids=going
    )
    return tuple((await clients.checkpoints.ApplyRetention(request, timeout=_DEADLINE)).checkpoint_ids)


async def keep_all(experiment_id: str, trial_ids: Collection[str], *, clients: Clients) -> None:
    """Notes that no policy deletes the checkpoints of some trials while they run.

    Raises:
        ResoluteError: The registry refuses, or is away.
    """
    listed = await _checkpoints("", trial_ids, clients)
    rules = checkpoints_pb2.RetentionRules(
        save_trial_latest=_ALL, ranked_checkpoint_ids=[checkpoint.checkpoint_id for checkpoint in listed]
    )
    request = checkpoints_pb2.ApplyRetentionRequest(experiment_id=experiment_id, rules=rules)
    await clients.checkpoints.ApplyRetention(request, timeout=_DEADLINE)


async def _checkpoints(
    experiment_id: str, trial_ids: Collection[str], clients: Clients
) -> Sequence[checkpoint_pb2.Checkpoint]:
    """The checkpoints of some trials; of all of the experiment where none are named."""
    listed: list[checkpoint_pb2.Checkpoint] = []
    chosen = sorted(trial_ids)
    for start in range(0, len(chosen) or 1, _TRIALS):
        request = checkpoints_pb2.ListCheckpointsRequest(
            experiment_ids=[] if chosen else [experiment_id],
            trial_ids=chosen[start : start + _TRIALS],
            page_size=_PAGE,
        )
        while True:
            response = await clients.checkpoints.ListCheckpoints(request, timeout=_DEADLINE)
            listed.extend(response.checkpoints)
            if not response.next_page_token:
                break
            request.page_token = response.next_page_token
    return listed


def _steps(listed: Iterable[checkpoint_pb2.Checkpoint]) -> Mapping[str, set[int]]:
    """The steps at which each trial has checkpoints."""
    steps: defaultdict[str, set[int]] = defaultdict(set)
    for checkpoint in listed:
        if checkpoint.trial_id:
            steps[checkpoint.trial_id].add(checkpoint.steps_completed)
    return steps


def _milestones(config: Mapping[str, Any]) -> tuple[float, float]:
    """The steps and the seconds between milestones; 0 for none."""
    every = config["checkpoint_storage"].get("keep_every") or {}
    steps = float(every.get("batches") or 0)
    if every.get("epochs"):
        # A config with epochs has both: it is refused without.
        batch = config["hyperparameters"]["global_batch_size"]["val"]
        steps = float(every["epochs"] * config["records_per_epoch"] / batch)
    return steps, 3600.0 * float(every.get("hours") or 0)


async def _validations(
    trial_id: str, metric: str, steps: set[int], clients: Clients
) -> Iterable[checkpoints_pb2.RetentionRules.Validation]:
    request = metrics_service_pb2.GetSeriesRequest(trial_id=trial_id, group="validation", name=metric)
    try:
        series = await clients.metrics.GetSeries(request, timeout=_DEADLINE)
    except NotFoundError:
        return []
    points = zip(series.steps, series.values, series.times, strict=True)
    return [
        checkpoints_pb2.RetentionRules.Validation(
            trial_id=trial_id,
            steps_completed=step,
            value=value,
            report_time=to_timestamp(time),
        )
        for step, value, time in points
        if step in steps
    ]


def _sources(connection: Connection, ids: set[str]) -> list[str]:
    """Those checkpoints that trials of any experiment began from, or are going to."""
    announced = {
        str(live.config["searcher"].get("source_checkpoint_uuid") or "")
        for live in experiments.live(connection)
    }
    return sorted(trials.sources(connection, ids) | (announced & ids))
