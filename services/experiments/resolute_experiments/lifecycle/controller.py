"""The controller of one experiment: the only code that calls other services for it.

Two tasks run for a live experiment. One follows the actions of its search and applies each once. The other
reads this service's database and takes due steps: it creates the search, processes ended runs, delivers
messages, refreshes the progress, and ends or removes the experiment. Each step can be interrupted anywhere
and repeated: calls are idempotent, and their effects are written together with the fact that the step was
done.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog
from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.api.searcher.v1 import action_pb2, searcher_service_pb2
from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.tasks import end_tasks
from resolute.errors import InternalError, InvalidArgumentError, NotFoundError, ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.continuation.resume import resume_experiment
from resolute_experiments.exits.log_policies import evaluate_log_policies
from resolute_experiments.exits.lost_steps import barren_ends, reached_steps
from resolute_experiments.exits.policy import ExitFacts, Operation, TrialContext, decide_exit
from resolute_experiments.exits.recording import Evidence, SealResult, record_run_exit
from resolute_experiments.exits.repetition import Failure, why_not_again
from resolute_experiments.exits.summary import summarize_exit
from resolute_experiments.lifecycle import actions, commands
from resolute_experiments.lifecycle.action_inputs import acknowledge_unapplied, fetch_action_inputs
from resolute_experiments.lifecycle.deletion import delete_everywhere
from resolute_experiments.lifecycle.metric_warning import MetricWarning
from resolute_experiments.lifecycle.outbox_delivery import deliver
from resolute_experiments.lifecycle.progress import Progress
from resolute_experiments.lifecycle.stuck_steps import MOST_DEFECTS, StuckSteps
from resolute_experiments.retention.garbage_collection import apply_retention, trials_awaiting_reports
from resolute_experiments.specs.machines import is_preemptible
from resolute_experiments.specs.search import search_spec, works_by_operations
from resolute_experiments.states import LIVE_EXPERIMENTS, STOPPING_EXPERIMENTS, ExperimentState
from resolute_experiments.store import continuations, experiments, outbox, runs, trials
from resolute_experiments.store.copies import reported_steps
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Container, Run
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, watched
from resolute_serving.repetition import repeat

_TICK_SECONDS = 5.0
"""Between two looks while a trial runs: its progress is no event."""
_LATE_SECONDS = 600.0
"""How long the end of an experiment waits for reports that a run left on its machine."""
_WARM_START_SECONDS = 3600.0
"""How long a policy keeps the start of a search for its first trials."""
_IDLE_SECONDS = 600.0
"""Between two looks otherwise. Every change wakes the controller: this bounds what a defect could delay."""
_SPREAD = random.Random()  # noqa: S311 - no secret; the global state belongs to other users of this process

_log = structlog.get_logger("controller")


class FleetProtocol(Protocol):
    """The methods of the fleet that a controller needs."""

    async def deliver_lines(self, ended: Sequence[Run]) -> None:
        """Sends, for a bounded time, the lines that runs left whose containers have ended."""

    async def release(self, run: Run) -> None:
        """Frees what a run holds there; called after it was settled."""

    async def unreported(self, experiment: Experiment) -> Sequence[str]:
        """Names the allocations where it runs of which reports have not all arrived."""


class ExperimentController:
    """Drives one experiment to its end.

    Args:
        experiment_id: UUID of the experiment.
        core: The context that all parts of this service share.
        clients: The other services.
        lease_ttl: Seconds after which a lost machine is detected at the latest.
        machines: The fleet, with the experiment's runs and their remaining data.
        copy_metrics: Copies all current changes of the metrics service.
        judge: Judges the reports so far of a trial, given by its UUID.
    """

    def __init__(
        self,
        experiment_id: str,
        core: ServiceContext,
        *,
        clients: Clients,
        lease_ttl: float,
        machines: FleetProtocol,
        copy_metrics: Callable[[], Awaitable[None]],
        judge: Callable[[str], Awaitable[None]],
    ) -> None:
        self._id = experiment_id
        self._core = core
        self._database = core.database
        self._clients = clients
        self._notifier = core.notifier
        self._clock = core.clock
        self._lease_ttl = lease_ttl
        self._machines = machines
        self._copy_metrics = copy_metrics
        self._judge = judge
        self._metric_warning = MetricWarning(
            core.database, clients=clients, notifier=core.notifier, clock=core.clock, timing=core.timing
        )
        self._progress = Progress(core.database, clients=clients, notifier=core.notifier, clock=core.clock)
        self._stuck = StuckSteps(
            experiment_id, database=core.database, notifier=core.notifier, clock=core.clock
        )
        self._running = False
        self._late_since: float | None = None

    async def run(self) -> None:
        """Leads the experiment until nothing is left to do for it."""
        follower = asyncio.create_task(self._follow_actions(), name=f"follow-{self._id}")
        try:
            await repeat(
                self._drive,
                notifier=self._notifier,
                topics=[self._id],
                failures=LoggedBackoff(_log, "a step of an experiment failed", experiment=self._id),
            )
        finally:
            await end_tasks(follower)

    async def _drive(self) -> float | None:
        """Makes a step; returns the seconds until the next, None after the last."""
        try:
            done = await self._step()
        except Exception as failure:
            await self._stuck.failed(failure, task="steps")
            raise
        await self._stuck.succeeded(task="steps")
        if done:
            return None
        return _TICK_SECONDS if self._running else _idle_seconds()

    async def _step(self) -> bool:
        experiment = await self._read()
        if experiment.state is ExperimentState.DELETING:
            await delete_everywhere(
                experiment, self._core.timing(), database=self._database, clients=self._clients
            )
            return True
        if experiment.unmanaged:
            await deliver(experiment, database=self._database, clients=self._clients)
            return True
        if experiment.state not in LIVE_EXPERIMENTS:
            return True
        await self._ensure_search(experiment)
        await self._process_ended_runs(experiment)
        refusal = await deliver(experiment, database=self._database, clients=self._clients)
        if refusal:
            await self._fail(refusal)
            experiment = await self._read()
        await self._resume(experiment)
        await self._refresh_progress(experiment)
        await self._metric_warning.refresh(experiment)
        return await self._finish(await self._read())

    async def _read(self) -> Experiment:
        return await self._database.read(lambda c: experiments.get(c, experiment_id=self._id))

    async def _ensure_search(self, experiment: Experiment) -> None:
        if experiment.search_created or experiment.state not in {
            ExperimentState.ACTIVE,
            ExperimentState.PAUSED,
        }:
            return
        try:
            spec = search_spec(experiment.config, source_checkpoint_id=await self._warm_start(experiment))
            request = searcher_service_pb2.CreateSearchRequest(search_id=experiment.id, spec=spec)
            await self._clients.searcher.CreateSearch(request)
        except (InvalidArgumentError, NotFoundError) as error:
            await self._fail(f"the search could not be created: {error}")
            return
        except InternalError as defect:
            if not self._stuck.is_hopeless(defect):
                raise
            await self._fail(f"the search could not be created in {MOST_DEFECTS} attempts: {defect}")
            return
        await self._database.write(lambda c: experiments.update(c, self._id, search_created=True))
        self._notifier.notify(self._id)

    async def _warm_start(self, experiment: Experiment) -> str:
        searcher = experiment.config["searcher"]
        if searcher.get("source_checkpoint_uuid"):
            source = str(searcher["source_checkpoint_uuid"])
            await self._hold(source)
            return source
        if searcher.get("source_trial_id") is None:
            return ""
        number = int(searcher["source_trial_id"])
        trial = await self._database.read(lambda c: trials.get(c, number=number))
        request = checkpoints_pb2.GetLatestCheckpointRequest(trial_id=trial.id)
        latest = (await self._clients.checkpoints.GetLatestCheckpoint(request)).checkpoint.checkpoint_id
        if latest:
            await self._hold(latest)
        return latest

    async def _hold(self, checkpoint_id: str) -> None:
        """Keeps a checkpoint until the rows of the trials name it that begin from it."""
        request = checkpoints_pb2.HoldCheckpointRequest(
            checkpoint_id=checkpoint_id, hold_seconds=_WARM_START_SECONDS
        )
        await self._clients.checkpoints.HoldCheckpoint(request)

    async def _fail(self, failure: str) -> None:
        timing = self._core.timing()

        def work(connection: Connection) -> None:
            current = experiments.get(connection, experiment_id=self._id)
            commands.fail(connection, current, timing, failure=failure)

        await self._database.write(work)
        self._notifier.notify(self._id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)

    async def _process_ended_runs(self, experiment: Experiment) -> None:
        under_way = await self._database.read(self._runs_under_way)
        self._running = bool(under_way)
        ended = [entry for entry in under_way if all(container.over for container in entry[1])]
        if ended:
            # Before any end is published, so that who reads the log then has it whole.
            await self._machines.deliver_lines([run for run, _ in ended])
        for run, containers in ended:
            await self._process_exit(experiment, run, containers)

    def _runs_under_way(self, connection: Connection) -> list[tuple[Run, list[Container]]]:
        return [
            (run, runs.containers_of(connection, run.allocation_id))
            for run in runs.unfinalized(connection, experiment_id=self._id)
        ]

    async def _process_exit(self, experiment: Experiment, run: Run, containers: list[Container]) -> None:
        # An action that gives the trial work may come after the seals and before the decision: it finds the
        # trial still busy, and the decision, which knows of no work, would leave it idle forever.
        while not await self._decide_exit(experiment, run.allocation_id, containers):
            pass
        await self._machines.release(run)
        self._notifier.notify(self._id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)

    async def _decide_exit(
        self, experiment: Experiment, allocation_id: str, containers: list[Container]
    ) -> bool:
        """Writes what the end of a run means; False if its trial has changed while that was found out."""
        run, before = await self._database.read(lambda c: _run_and_trial(c, allocation_id))
        if experiment.config.get("guard"):
            await self._judge(before.id)
            run, before = await self._database.read(lambda c: _run_and_trial(c, allocation_id))
        evidence = await self._evidence(experiment, run, containers)
        exit_, sealed = evidence.exit, evidence.sealed

        def work(connection: Connection) -> bool:
            trial = trials.get(connection, trial_id=run.trial_id)
            if trial.revision != before.revision:
                return False
            # The state is read again: a pause or a cancel may have come while the services were being sealed.
            state = experiments.get(connection, experiment_id=self._id).state
            earlier = [past for past in runs.of_trial(connection, trial.id) if past.run < run.run]
            not_repeated = ""
            if not experiment.config.get("repeat_same_failure") and run.good_steps is None:
                now = Failure(run=run.run, text=evidence.failure, steps=evidence.steps(trial))
                not_repeated = why_not_again(now, exit_, earlier=earlier)
            facts = ExitFacts(
                exit=exit_,
                operation=Operation(
                    uses_operations=works_by_operations(experiment.config),
                    completed=sealed.operation_completed,
                    closed=sealed.operation_closed or trial.closed,
                ),
                situation=TrialContext(
                    experiment=state,
                    kill_requested=trial.kill_requested,
                    restarts=trial.restarts,
                    max_restarts=int(experiment.config["max_restarts"]),
                    retries_cancelled=evidence.findings.cancels_retries,
                    comes_again=bool(not_repeated),
                    taken_back=run.good_steps is not None,
                    on_preemptible=is_preemptible(experiment.config),
                    barren_ends=barren_ends(run, exit_, kept_steps=sealed.kept_steps(trial), earlier=earlier),
                ),
            )
            record_run_exit(
                connection,
                trial,
                run,
                evidence=replace(evidence, not_repeated=not_repeated),
                decision=decide_exit(facts),
                experiment=state,
                timing=self._core.timing(),
                hold_seconds=float((experiment.config.get("on_failure") or {}).get("hold", 0.0)),
            )
            return True

        return await self._database.write(work)

    async def _evidence(self, experiment: Experiment, run: Run, containers: list[Container]) -> Evidence:
        sealed = await self._seal(run, by_operations=works_by_operations(experiment.config))
        exit_, failure = summarize_exit(
            run, containers, now=self._clock.time(), notice_seconds=self._lease_ttl
        )
        unfinished = exit_.lost or exit_.acknowledged or exit_.exit_code != 0
        return Evidence(
            exit=exit_,
            failure=failure if run.good_steps is None else run.guard,
            sealed=sealed,
            reached_steps=await reached_steps(run, clients=self._clients) if unfinished else None,
            findings=await evaluate_log_policies(
                experiment.config, run, containers, self._clients, failed=bool(failure and exit_.exit_code)
            ),
        )

    async def _seal(self, run: Run, *, by_operations: bool) -> SealResult:
        fence = searcher_service_pb2.FenceTrialRequest(trial_id=run.trial_id, min_run=run.run + 1)
        operation = (await self._clients.searcher.FenceTrial(fence)).operation
        # What the search counts as done is not taken back.
        done = operation.completed or (operation.closed and not by_operations)
        checkpoint_fence = checkpoints_pb2.FenceTrialRequest(
            trial_id=run.trial_id, min_run=run.run + 1, most_steps=None if done else run.good_steps
        )
        latest = (await self._clients.checkpoints.FenceTrial(checkpoint_fence)).latest_checkpoint
        return SealResult(
            operation_length=operation.length,
            operation_completed=operation.completed,
            operation_closed=operation.closed,
            checkpoint_id=latest.checkpoint_id,
            steps_completed=latest.steps_completed,
        )

    async def _resume(self, experiment: Experiment) -> None:
        if experiment.state is not ExperimentState.ACTIVE or not experiment.search_created:
            return
        if await resume_experiment(
            experiment, self._core.timing(), database=self._database, clients=self._clients
        ):
            self._notifier.notify(self._id)

    async def _refresh_progress(self, experiment: Experiment) -> None:
        if experiment.state is not ExperimentState.ACTIVE or not experiment.search_created:
            return
        try:
            await self._progress.refresh(experiment, running=self._running)
        except NotFoundError as gone:
            await self._fail(f"its search is gone: {gone}")

    async def _finish(self, experiment: Experiment) -> bool:
        if experiment.state not in STOPPING_EXPERIMENTS:
            return False
        if not await self._database.read(self._nothing_runs):
            return False
        if experiment.search_created:
            await acknowledge_unapplied(self._id, clients=self._clients)
        late = await trials_awaiting_reports(
            experiment, unreported=self._machines.unreported, database=self._database
        )
        if self._awaits_reports(late):
            return False
        # Before the end is published, so that its waiters find the checkpoints that stay.
        being_read = await apply_retention(
            experiment, late=late, database=self._database, clients=self._clients
        )
        await self._refresh_copy(experiment)
        await self._metric_warning.refresh(experiment, ending=True)

        def work(connection: Connection) -> bool:
            if outbox.pending(connection, self._id, limit=1):
                return False
            # What later reports and readers leave to collect, is collected when they have arrived and ended.
            experiments.update(connection, self._id, retention_owed=being_read or bool(late))
            current = experiments.get(connection, experiment_id=self._id)
            after = commands.finish_if_done(connection, current, self._core.timing())
            return after not in STOPPING_EXPERIMENTS

        finished = await self._database.write(work)
        self._notifier.notify(watched(self._id))
        if finished:
            _log.info("experiment ended", experiment=experiment.number)
        return finished

    async def _refresh_copy(self, experiment: Experiment) -> None:
        """Copies the last validations and steps before the end is published, which does not wait for it."""
        await self._database.write(partial(reported_steps.look_again, experiment_id=self._id))
        try:
            await self._copy_metrics()
        except ResoluteError as failure:
            _log.warning(
                "what trials reported last comes later", experiment=experiment.number, reason=str(failure)
            )

    def _awaits_reports(self, late: Collection[str]) -> bool:
        """Whether to wait for late reports: they decide which checkpoints are the best."""
        if not late:
            self._late_since = None
            return False
        now = self._clock.monotonic()
        if self._late_since is None:
            self._late_since = now
        self._running = now - self._late_since < _LATE_SECONDS
        return self._running

    def _nothing_runs(self, connection: Connection) -> bool:
        return not trials.any_unfinished(connection, self._id) and not outbox.pending(
            connection, self._id, limit=1
        )

    async def _follow_actions(self) -> None:
        failures = LoggedBackoff(_log, "the actions of a search cannot be followed", experiment=self._id)

        async def follow() -> float | None:
            experiment = await self._read()
            if not experiment.search_created or await self._is_resuming():
                return _TICK_SECONDS
            await self._follow(experiment.action_cursor, failures)
            ended = (await self._read()).state not in {ExperimentState.ACTIVE, ExperimentState.PAUSED}
            return None if ended else 0.0

        await repeat(follow, notifier=self._notifier, topics=[self._id], failures=failures)

    async def _is_resuming(self) -> bool:
        # What a search says before it continues, it does not mean any more: that it has ended.
        return bool(await self._database.read(lambda c: continuations.pending(c, self._id)))

    async def _follow(self, cursor: int, backoff: LoggedBackoff) -> None:
        request = searcher_service_pb2.FollowActionsRequest(search_id=self._id, after_sequence=cursor)
        async for response in self._clients.searcher.FollowActions(request):
            batch = list(response.actions)
            if not batch:
                continue
            applied = await self._apply(batch)
            acknowledged = searcher_service_pb2.AcknowledgeActionsRequest(
                search_id=self._id, sequence=applied
            )
            await self._clients.searcher.AcknowledgeActions(acknowledged)
            self._notifier.notify(self._id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
            # The searcher answers again: the next failure is a first one.
            backoff.succeeded()

    async def _apply(self, batch: list[action_pb2.Action]) -> int:
        timing = self._core.timing()
        try:
            answers = await fetch_action_inputs(self._id, batch, clients=self._clients)
            applied = await self._database.write(lambda c: actions.apply(c, self._id, batch, timing, answers))
        except Exception as failure:
            await self._stuck.failed(failure, task="actions")
            raise
        await self._stuck.succeeded(task="actions")
        return applied


def _run_and_trial(connection: Connection, allocation_id: str) -> tuple[Run, trials.Trial]:
    run = runs.get(connection, allocation_id)
    return run, trials.get(connection, trial_id=run.trial_id)


def _idle_seconds() -> float:
    # Spread out, so that hundreds of controllers do not look at the same instant.
    return _IDLE_SECONDS * _SPREAD.uniform(0.5, 1.0)
