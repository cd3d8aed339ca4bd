"""Alerts that no single change causes: values, waits, problems and tokens, looked at now and then."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_experiments.accounts.store.tokens import TokenKind
from resolute_experiments.alerts import raising
from resolute_experiments.alerts.alert import Alert
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import TrialState
from resolute_experiments.store import alerts, experiments, trials
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.schema import experiments as experiments_table
from resolute_experiments.store.schema import tokens, workspaces
from resolute_experiments.store.schema import trials as trials_table
from resolute_experiments.store.trials import Trial
from resolute_experiments.store.validations import TrialValidations
from resolute_experiments.topics import ALERTS
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat

_LOOK_SECONDS = 2.0
_QUIET_SECONDS = 5.0
"""Between two looks while no alerts are set; another replica may set some."""
_DAY = 86400.0
_NUMBERS = re.compile(r"[\d.,]+")
_WAITS_AT_ONCE = 200
LookedAt: TypeAlias = dict[tuple[int, str], tuple[float, str]]
"""The last trial looked at for a rule, given by workspace and content: when it was queued, and its UUID."""
Due: TypeAlias = tuple[Alert, Sequence[tuple[int, str]]]
"""An alert and the endpoints that have not received it yet."""
_log = structlog.get_logger("alerts")


class AlertWatch:
    """Looks for what rules are about that happens by the passing of time.

    Args:
        core: What all handlers of this service share.
        problems: Names the problems of the cluster, such as full disks.
    """

    def __init__(self, core: ServiceContext, *, problems: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self._core = core
        self._problems = problems
        self._looked_at: LookedAt = {}
        self._rules = Remembered(core.database, alerts.rules)

    async def run(self) -> None:
        """Looks until the service stops."""

        async def look() -> float:
            await self.look()
            return _LOOK_SECONDS if await self._rules.get() else _QUIET_SECONDS

        failures = LoggedBackoff(_log, "what alerts are about cannot be looked at")
        await repeat(look, notifier=self._core.notifier, topics=[ALERTS], failures=failures)

    async def look(self) -> None:
        """Raises each alert that is due now."""
        stored = await self._rules.get()
        kinds = {rule["on"] for document in stored for rule in document.rules}
        now = self._core.clock.time()
        problems = await self._problems() if "problem" in kinds else ()
        if not (kinds & {"queue_wait", "token"} or problems):
            return
        looked_at = dict(self._looked_at)
        due = await self._core.database.read(lambda c: list(_due(c, stored, problems, looked_at, now=now)))
        if due:
            await self._core.database.write(lambda c: _put(c, due))
        self._looked_at = looked_at


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
        yield "nan", f"{metric} is no number at step {at}"
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
    problems: Sequence[str],
    looked_at: LookedAt,
    *,
    now: float,
) -> Iterator[Due]:
    for document in stored:
        for _, rule in raising.rules_on([document], "queue_wait"):
            yield from _waits(connection, document, rule, looked_at, now=now)
    # Only the alerts of the cluster get what is the cluster's.
    of_cluster = [each for each in stored if each.workspace_number == CLUSTER]
    raised = [_of_problem(problem, now=now) for problem in problems]
    for _, rule in raising.rules_on(of_cluster, "token"):
        raised.extend(_of_tokens(connection, rule["seconds"], now=now))
    yield from _undelivered(
        connection, [(alert, raising.endpoints_of(of_cluster, alert, {})) for alert in raised]
    )


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


def _of_problem(problem: str, *, now: float) -> Alert:
    # Said again each day: what is wrong for a day is not to be forgotten.
    return Alert(
        key=f"problem-{_name_of(problem)}-{int(now // _DAY)}",
        on="problem",
        title="A problem of the cluster",
        text=problem,
        level="error",
        time=now,
        link="cluster",
    )


def _of_tokens(connection: Connection, seconds: float, *, now: float) -> Iterator[Alert]:
    table = tokens.c
    query = sa.select(table.id, table.description, table.expires_at)
    ending = query.where(
        table.expires_at > now,
        table.expires_at <= now + seconds,
        table.kind == TokenKind.ACCESS.value,
        sa.not_(table.revoked),
    )
    for row in connection.execute(ending):
        yield Alert(
            key=f"token-{row.id}-{row.expires_at:.0f}",
            on="token",
            title="A token ends soon",
            text=f"Token {row.id} ({row.description}) ends in {(row.expires_at - now) / 3600:.1f} hours.",
            level="warn",
            time=now,
        )


def _name_of(problem: str) -> str:
    """A short name of a problem, without the numbers in it, which change while the problem is the same."""
    return hashlib.sha256(_NUMBERS.sub("", problem).encode()).hexdigest()[:16]
