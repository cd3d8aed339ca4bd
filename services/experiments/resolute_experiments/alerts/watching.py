"""Alerts without a single change as their cause: values, waits and conditions, checked at intervals."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.errors import ResoluteError
from resolute_experiments.accounts.store import workspaces as workspaces_table
from resolute_experiments.alerts import conditions, raising
from resolute_experiments.alerts.alert import Alert
from resolute_experiments.alerts.conditions import CertificateEnd
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import TrialState
from resolute_experiments.store import alerts, experiments, trials
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.copies.validations import TrialValidations
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.schema import experiments as experiments_table
from resolute_experiments.store.schema import trials as trials_table
from resolute_experiments.store.schema import workspaces
from resolute_experiments.store.trials import Trial
from resolute_experiments.topics import ALERTS
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat

_LOOK_SECONDS = 2.0
_QUIET_SECONDS = 5.0
"""Between two looks while no alerts are set; another replica may set some."""
_STORAGE_SECONDS = 600.0
"""Between two looks at how much storage workspaces use: files are counted one by one."""
_CERTIFICATES_SECONDS = 60.0
"""Between two looks at certificates."""
_WAITS_AT_ONCE = 200
LookedAt: TypeAlias = dict[tuple[int, str], tuple[float, str]]
"""The last trial looked at for a rule, given by workspace and content: when it was queued, and its UUID."""
Due: TypeAlias = tuple[Alert, Sequence[tuple[int, str]]]
"""An alert and the endpoints that have not received it yet."""
_log = structlog.get_logger("alerts")


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The conditions of the cluster that are checked, each only if rules mention it."""

    problems: Callable[[], Awaitable[Sequence[str]]]
    """Names its problems, such as full disks."""
    nodes: Callable[[], Mapping[str, int]]
    """How many nodes each pool has."""
    certificates: Callable[[], Sequence[CertificateEnd]]
    """When its certificates end. It blocks."""
    storage: Callable[[int], Awaitable[int]]
    """How many bytes the checkpoints of a workspace take."""


class AlertWatch:
    """Checks for conditions of rules that arise with time.

    Args:
        core: The context that all handlers share.
        observed: The conditions of the cluster.
    """

    def __init__(self, core: ServiceContext, observed: Observed) -> None:
        self._core = core
        self._observed = observed
        self._looked_at: LookedAt = {}
        self._rules = Remembered(core.database, alerts.rules)
        self._nodes: Mapping[str, int] = {}
        """Those of each pool at the last look."""
        self._certificates: Sequence[CertificateEnd] = ()
        self._certificates_at: float | None = None
        self._storage: dict[int, int] = {}
        self._storage_at: float | None = None

    async def run(self) -> None:
        """Looks until the service stops."""

        async def look() -> float:
            await self.look()
            return _LOOK_SECONDS if await self._rules.get() else _QUIET_SECONDS

        failures = LoggedBackoff(_log, "the states for alerts cannot be read")
        await repeat(look, notifier=self._core.notifier, topics=[ALERTS], failures=failures)

    async def look(self) -> None:
        """Raises each alert that is due now."""
        stored = await self._rules.get()
        kinds = {rule["on"] for document in stored for rule in document.rules}
        now = self._core.clock.time()
        of_cluster = [alert async for alert in self._of_cluster(stored, kinds, now=now)]
        if "quota" in kinds:
            await self._measure_storage()
        if not (kinds & {"queue_wait", "token", "quota"} or of_cluster):
            return
        looked_at = dict(self._looked_at)
        storage = self._storage
        due = await self._core.database.read(
            lambda c: list(_due(c, stored, of_cluster, looked_at, storage=storage, now=now))
        )
        if due:
            await self._core.database.write(lambda c: _put(c, due))
        self._looked_at = looked_at

    async def _of_cluster(
        self, stored: Sequence[StoredRules], kinds: Collection[str], *, now: float
    ) -> AsyncIterator[Alert]:
        """The alerts about the cluster that need no look into the database."""
        for problem in await self._observed.problems() if "problem" in kinds else ():
            yield conditions.of_problem(problem, now=now)
        if "node_lost" in kinds:
            before, self._nodes = self._nodes, dict(self._observed.nodes())
            for pool, nodes in self._nodes.items():
                if nodes < before.get(pool, 0):
                    yield conditions.of_nodes(pool, before[pool], nodes, now=now)
        if "certificate" in kinds:
            if _is_due(self._certificates_at, _CERTIFICATES_SECONDS, self._core.clock.monotonic()):
                self._certificates_at = self._core.clock.monotonic()
                self._certificates = await asyncio.to_thread(self._observed.certificates)
            seconds = max(rule["seconds"] for _, rule in raising.rules_on(stored, "certificate"))
            for end in self._certificates:
                if end.time <= now + seconds:
                    yield conditions.of_certificate(end, now=now)

    async def _measure_storage(self) -> None:
        """Asks how much the workspaces use whose storage is bounded, now and then."""
        if not _is_due(self._storage_at, _STORAGE_SECONDS, self._core.clock.monotonic()):
            return
        self._storage_at = self._core.clock.monotonic()
        for workspace in await self._core.database.read(workspaces_table.with_quotas):
            if workspace.quota.storage_bytes:
                # The checkpoints service may be away: what was known last holds.
                with suppress(ResoluteError):
                    self._storage[workspace.number] = await self._observed.storage(workspace.number)


def _is_due(last: float | None, pause: float, now: float) -> bool:
    return last is None or now - last >= pause


def raise_of_validations(
    connection: Connection, changes: Collection[TrialValidations], *, now: float
) -> None:
    """Raises the alerts of rules about the metric of searches, once for each trial and bound."""
    stored = alerts.rules(connection)
    if not any(raising.rules_on(stored, "metric")):
        return
    known = experiments.known(connection, {change.experiment_id for change in changes})
    for change in changes:
        experiment = known.get(change.experiment_id)
        if experiment is None:
            continue
        mine = [each for each in stored if each.workspace_number in {experiment.workspace_id, CLUSTER}]
        for workspace_number, rule in raising.rules_on(mine, "metric"):
            for bound, sentence in _passed(rule, change, experiment.config["searcher"]["metric"]):
                trial = trials.get(connection, trial_id=change.trial_id)
                alert = _of_trial(
                    "metric", f"{trial.id}-{bound}", sentence, trial=trial, experiment=experiment, now=now
                )
                own = StoredRules(
                    workspace_number=workspace_number,
                    rules=(dict(rule),),
                    only_named=next(e.only_named for e in mine if e.workspace_number == workspace_number),
                )
                raising.put(connection, alert, raising.endpoints_of([own], alert, experiment.config))


def _passed(rule: Mapping[str, Any], change: TrialValidations, metric: str) -> Iterator[tuple[str, str]]:
    """The bounds of a rule that a trial's validations have passed, each with its sentence."""
    value, at = change.last_value, change.last_steps
    above, below, age = rule.get("above"), rule.get("below"), rule.get("no_improvement")
    if rule.get("nan") and value is None:
        yield "nan", f"{metric} is not a number at step {at}"
    if above is not None and value is not None and value > above:
        yield f"above-{above}", f"{metric} is {value:.6g} at step {at}, above {above}"
    if below is not None and value is not None and value < below:
        yield f"below-{below}", f"{metric} is {value:.6g} at step {at}, below {below}"
    if age is not None and change.best_steps is not None and at - change.best_steps >= age:
        yield (
            f"best-{change.best_steps}-{age}",
            f"{metric} has not improved since step {change.best_steps}, and the trial is at step {at}",
        )


def _put(connection: Connection, due: Sequence[Due]) -> None:
    for alert, endpoints in due:
        raising.put(connection, alert, endpoints)


def _due(
    connection: Connection,
    stored: Sequence[StoredRules],
    of_cluster: Sequence[Alert],
    looked_at: LookedAt,
    *,
    storage: Mapping[int, int],
    now: float,
) -> Iterator[Due]:
    for document in stored:
        for _, rule in raising.rules_on([document], "queue_wait"):
            yield from _waits(connection, document, rule, looked_at, now=now)
        for _, rule in raising.rules_on([document], "quota"):
            workspace = None if document.workspace_number == CLUSTER else document.workspace_number
            quotas = conditions.of_quotas(
                connection, workspace, percent=rule["percent"], storage=storage, now=now
            )
            own = replace(document, rules=(dict(rule),))
            yield from _to_endpoints(connection, [own], quotas)
    # Only the alerts of the cluster get what is the cluster's.
    cluster = [each for each in stored if each.workspace_number == CLUSTER]
    ending = [
        alert
        for _, rule in raising.rules_on(cluster, "token")
        for alert in conditions.of_tokens(connection, rule["seconds"], now=now)
    ]
    yield from _to_endpoints(connection, cluster, [*of_cluster, *ending])


def _to_endpoints(
    connection: Connection, stored: Sequence[StoredRules], raised: Iterable[Alert]
) -> Iterator[Due]:
    return _undelivered(connection, [(alert, raising.endpoints_of(stored, alert, {})) for alert in raised])


def _undelivered(connection: Connection, raised: Sequence[Due]) -> Iterator[Due]:
    """What is left of alerts and their endpoints without those that have received them."""
    delivered = alerts.delivered(connection, [alert.key for alert, _ in raised])
    for alert, endpoints in raised:
        if missing := [each for each in endpoints if (alert.key, *each) not in delivered]:
            yield alert, missing


def _waits(
    connection: Connection,
    document: StoredRules,
    rule: Mapping[str, Any],
    looked_at: LookedAt,
    *,
    now: float,
) -> Iterator[Due]:
    """The next waits of a rule, longest first: each trial that is queued is looked at once."""
    place = (document.workspace_number, repr((rule, sorted(document.only_named))))
    waiting = _waiting(
        connection,
        document.workspace_number,
        until=now - rule["seconds"],
        after=looked_at.get(place, (0.0, "")),
    )
    known = experiments.known(connection, {trial.experiment_id for trial in waiting})
    raised: list[Due] = []
    for trial in waiting:
        experiment = known[trial.experiment_id]
        sentence = f"it has waited for slots for {now - trial.queued_at:.0f} seconds"
        key = f"{trial.id}-queued-{trial.queued_at:.0f}-{rule['seconds']}"
        alert = _of_trial("queue_wait", key, sentence, trial=trial, experiment=experiment, now=now)
        raised.append((alert, raising.endpoints_of([document], alert, experiment.config)))
    yield from _undelivered(connection, raised)
    if waiting:
        looked_at[place] = (waiting[-1].queued_at, waiting[-1].id)


def _waiting(
    connection: Connection, workspace_number: int, *, until: float, after: tuple[float, str]
) -> list[Trial]:
    """Trials of a workspace, or of all, that were queued until some time, after one that was looked at."""
    table = trials_table.c
    query = sa.select(table.id).where(
        table.state == TrialState.QUEUED.value,
        table.queued_at <= until,
        sa.tuple_(table.queued_at, table.id) > sa.tuple_(*map(sa.literal, after)),
    )
    if workspace_number != CLUSTER:
        query = (
            query.join(experiments_table, experiments_table.c.id == table.experiment_id)
            .join(workspaces, workspaces.c.name == experiments_table.c.workspace)
            .where(workspaces.c.number == workspace_number)
        )
    query = query.order_by(table.queued_at, table.id).limit(_WAITS_AT_ONCE)
    ids = list(connection.execute(query).scalars())
    found = trials.known(connection, ids)
    return [found[id_] for id_ in ids if id_ in found]


def _of_trial(on: str, key: str, sentence: str, *, trial: Trial, experiment: Experiment, now: float) -> Alert:
    return Alert(
        key=key,
        on=on,
        title=f"Trial {trial.number} of {experiment.label} ({experiment.name}): {sentence}",
        text=f"Trial {trial.number} of {experiment.label}: {sentence}.",
        level="warn",
        time=now,
        link=f"trials/{trial.number}",
        experiment=experiment.number,
        trial=trial.number,
    )
