"""The whole import: users and workspaces, then experiments in order, with the trials of several at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from resolute.client.remote.imports import batches
from resolute.client.services import Services
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute.imports.checkpoints import Checkpoints
from resolute.imports.experiments import ExperimentHere, Experiments, experiments_of, has_ended
from resolute.imports.history import History, TrialHere
from resolute.imports.master import Master, Message
from resolute.imports.models import bring_models, models_of
from resolute.imports.people import People, remark_groups
from resolute.imports.places import (
    archive_places,
    bring_places,
    bring_policies,
    bring_templates,
    projects_of,
    templates_of,
    workspaces_of,
)
from resolute.imports.report import Report

_TRIALS_AT_ONCE = 25
_MOST_BEGUN = 16
"""Experiments that are being filled at once: what waits for a thread takes memory."""
_LISTED = {
    "webhooks": "webhooks: endpoints of alerts take their place (docs/alerts.md)",
    "notebooks": "notebooks",
    "shells": "shells",
    "commands": "commands",
    "tensorboards": "TensorBoards: `det tensorboard start` shows the metrics that came",
}
"""Name of the path that lists them, and of the field of its answer."""
_ENDED = frozenset({"STATE_TERMINATED", "STATE_TERMINATING"})


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of an import."""

    experiments: tuple[int, ...] = ()
    """Only these, by their numbers there; empty for all."""
    logs: bool = True
    """Whether with the lines of logs."""
    copies_checkpoints: bool = False
    """Whether files of checkpoints are copied into the storage of this cluster."""
    threads: int = 4
    """How many batches of trials are brought at once."""


def count(master: Master, options: Options, *, report: Report) -> None:
    """Counts what an import would bring, and brings nothing."""
    report.add("users", new=sum(1 for _ in master.pages("/api/v1/users", "users")))
    for workspace in workspaces_of(master):
        report.add("workspaces", new=1)
        report.add("projects", new=sum(1 for _ in projects_of(master, workspace)))
    report.add("templates", new=sum(1 for _ in templates_of(master)))
    for listed in experiments_of(master, report, options.experiments):
        if has_ended(listed):
            report.add("experiments", new=1)
            report.add("trials", new=int(listed.get("numTrials") or 0))
            report.add("checkpoints", new=int(listed.get("checkpointCount") or 0))
        else:
            _remark_not_ended(listed, report)
    report.add("models", new=sum(1 for _ in models_of(master)))
    remark_groups(master, report)
    _remark_left_behind(master, report)


def bring(
    master: Master,
    services: Services,
    options: Options,
    *,
    report: Report,
    progress: Callable[[str], object] = lambda _text: None,
) -> None:
    """Imports everything that is not here. What is refused is in the report, and keeps nothing else away.

    Args:
        master: The other cluster, signed in as an admin.
        services: This one, as an admin.
        options: What is wanted.
        report: Called with everything.
        progress: Called with what is being brought, for people.

    Raises:
        AuthError: A token has ended, or its user is no admin here.
        UnavailableError: One of the clusters stopped answering; the same call goes on later.
    """
    about = master.get("/api/v1/master")
    cluster_id = str(about["clusterId"])
    people = People(master, services, report)
    progress("users, workspaces and projects")
    roles_count = bool(about.get("rbacEnabled"))
    people.bring_users(roles_count=roles_count)
    places = bring_places(master, services, report)
    if roles_count:
        people.bring_roles(places.workspaces)
    bring_templates(master, services, report)
    bring_policies(master, services, report, places)
    experiments = Experiments(
        master,
        services,
        report,
        cluster_id=cluster_id,
        places=places,
        copies_checkpoints=options.copies_checkpoints,
    )
    filling = _Filling(master, services, experiments, options=options, report=report)
    with ThreadPoolExecutor(max_workers=options.threads, thread_name_prefix="import") as pool:
        try:
            for listed in experiments_of(master, report, options.experiments):
                progress(f"experiment {listed['id']}: {listed.get('name', '')}")
                filling.begin(pool, listed)
            filling.finish_all()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    progress("models")

    bring_models(master, services, report, cluster_id=cluster_id, workspaces=places.workspaces)
    archive_places(master, services, places)
    remark_groups(master, report)
    _remark_left_behind(master, report)


@dataclass(frozen=True)
class _Begun:
    """An experiment whose trials are being imported."""

    here: ExperimentHere
    parts: Sequence[Future[None]]


class _Filling:
    """Creates experiments and trials in order, and imports their reports in threads."""

    def __init__(
        self,
        master: Master,
        services: Services,
        experiments: Experiments,
        *,
        options: Options,
        report: Report,
    ) -> None:
        self._master = master
        self._services = services
        self._experiments = experiments
        self._history = History(master, services, report)
        self._options = options
        self._report = report
        self._begun: deque[_Begun] = deque()

    def begin(self, pool: ThreadPoolExecutor, listed: Message) -> None:
        """Creates an experiment with its trials, and begins to fill them."""
        if not has_ended(listed):
            _remark_not_ended(listed, self._report)
            return
        with self._report.noting(f"experiment {listed['id']}"):
            here = self._experiments.bring(listed)
            if here is None:
                return
            trials = self._experiments.bring_trials(here)
            some = batches(trials, most=_TRIALS_AT_ONCE)
            parts = [pool.submit(self._fill, part, here) for part in some]
            parts.append(pool.submit(self._register, here, trials))
            self._begun.append(_Begun(here, parts))
        while len(self._begun) > _MOST_BEGUN:
            self._finish(self._begun.popleft())

    def finish_all(self) -> None:
        """Waits for everything that was begun."""
        while self._begun:
            self._finish(self._begun.popleft())

    def _finish(self, begun: _Begun) -> None:
        with self._report.noting(f"experiment {begun.here.number}"):
            for part in begun.parts:
                part.result()
            self._services.imports.finish(begun.here.experiment_id)

    def _fill(self, trials: Sequence[TrialHere], here: ExperimentHere) -> None:
        self._history.bring_metrics(trials, here.goal)
        if self._options.logs:
            for trial in trials:
                self._history.bring_lines(trial)

    def _register(self, here: ExperimentHere, trials: Sequence[TrialHere]) -> None:
        by_number = {trial.number: trial for trial in trials}
        Checkpoints(self._master, self._services, self._report, here=here, trials=by_number).bring()


def _remark_not_ended(listed: Message, report: Report) -> None:
    if "DELET" in str(listed.get("state")):
        report.remark("experiments whose deletion has begun there")
    else:
        report.remark("experiments that have not ended: start the same import when they have")


def _remark_left_behind(master: Master, report: Report) -> None:
    """Counts what the other cluster lists and no import can bring."""
    for name, text in _LISTED.items():
        try:
            found = master.get(f"/api/v1/{name}").get(name) or []
        except (NotFoundError, FailedPreconditionError):  # the release lacks them, or does not show them
            continue
        report.remark(text, sum(item.get("state") not in _ENDED for item in found))
    _remark_policies_of_tasks(master, report)
    report.remark("pins; usage by the hour; audit logs; tasks that have ended")
    report.remark("decisions of searches: configs say how they searched, and metrics what came of it")


def _remark_policies_of_tasks(master: Master, report: Report) -> None:
    try:
        policies = master.get("/api/v1/config-policies/global/NTSC").get("configPolicies")
    except NotFoundError:
        return
    report.remark("config policies of notebooks, shells and commands", int(bool(policies)))
