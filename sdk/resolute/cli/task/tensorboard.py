"""``resolute tensorboard start|open``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from resolute.cli.experiment.create import Request, submit
from resolute.cli.options.identifiers import EXPERIMENT, TRIALS
from resolute.cli.options.settings import Settings
from resolute.cli.task.kinds import TASK, find
from resolute.cli.task.submission import TaskOptions, task_options, whole_config
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentKind
from resolute.client.services import Services
from resolute.client.submission.config import config_text
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute.tensorboard.paths import get_experiment_sync_path, get_sync_path

_ENTRYPOINT = "python3 -m determined.exec.tensorboard"
_POLL_SECONDS = 0.5
_START_SECONDS = 300.0
_OWN_FIELDS = ("idle_timeout", "tensorboard_args")
"""Fields of the task's config that only TensorBoard reads."""


@click.command()
@click.argument("experiment_ids", metavar="[EXPERIMENT]...", nargs=-1, type=EXPERIMENT)
@click.option(
    "-t", "--trial-ids", type=TRIALS, default=(), metavar="ID[,ID...]", help="Also of these trials."
)
@click.option("--no-browser", is_flag=True, help="Print the address; open no browser.")
@task_options
@click.pass_context
def start(
    ctx: click.Context,
    experiment_ids: tuple[str, ...],
    trial_ids: tuple[str, ...],
    no_browser: bool,
    task: TaskOptions,
) -> None:
    """Start TensorBoard on the cluster, with the event files of experiments, and open it.

    It holds no slot, and ends after an hour without a request (`--config idle_timeout=SECONDS`). The
    package tensorboard must be installed on the cluster.
    """
    if not experiment_ids and not trial_ids:
        raise click.UsageError("Name an experiment, or a trial with --trial-ids.")
    settings = ctx.ensure_object(Settings)
    services = settings.services()
    sources, first = _sources(services, experiment_ids, trial_ids)
    own = {name: task.config.pop(name) for name in _OWN_FIELDS if name in task.config}
    shown = ", ".join(source["name"] for source in sources)
    config = {
        "workspace": first.workspace,
        "project": first.project,
        **whole_config(services, task, description=f"TensorBoard ({shown})", entrypoint=_ENTRYPOINT),
    }
    config["data"] = {"tensorboard": {"sources": sources, **own}}
    resources = config.get("resources") or {}
    config["resources"] = resources if "slots" in resources else {"slots_per_trial": 0, **resources}
    request = Request(
        config=config_text(config),
        model_definition=task.directory,
        includes=task.includes,
        git=False,
        kind=ExperimentKind.TENSORBOARD,
    )
    created = submit(ctx, request, follow_it=False)
    if not task.detach:
        _show(_wait_for_address(services, created.uuid), browser=not no_browser)


@click.command(name="open")
@click.argument("task", type=TASK)
@click.pass_obj
def open_(settings: Settings, task: str) -> None:
    """Print the address of a TensorBoard, once it has one, and open it in a browser."""
    services = settings.services()
    record = find(services, task, ExperimentKind.TENSORBOARD)
    _show(_wait_for_address(services, record.uuid), browser=True)


def _sources(
    services: Services, experiment_ids: Sequence[str], trial_ids: Sequence[str]
) -> tuple[list[dict[str, Any]], ExperimentRecord]:
    """Where the event files lie that are to be shown; and the first experiment."""
    cluster = services.cluster.get().cluster_id
    experiments = [services.experiments.get(key) for key in experiment_ids]
    places = [
        (experiment, f"experiment {experiment.id}", get_experiment_sync_path(cluster, str(experiment.id)))
        for experiment in experiments
    ]
    for trial in map(services.trials.get, trial_ids):
        one = services.experiments.get(trial.experiment_uuid)
        path = get_sync_path(cluster, str(one.id), str(trial.id))
        places.append((one, f"trial {trial.id}", path))
    sources = [
        {
            "name": f"{name} in {storage['host_path']}" if number else name,
            "storage": storage,
            "path": str(path),
        }
        for one, name, path in places
        for number, storage in enumerate(_storages(one))
    ]
    return sources, places[0][0]


def _storages(experiment: ExperimentRecord) -> list[dict[str, Any]]:
    """That of an experiment's config, and the directories of workspaces that its runs had instead."""
    section = (experiment.config or {}).get("checkpoint_storage") or {}
    others = ({"type": "shared_fs", "host_path": path} for path in experiment.checkpoint_directories)
    return [section, *others]


def _wait_for_address(services: Services, key: str) -> str:
    """Waits until a TensorBoard listens, and returns where.

    Raises:
        FailedPreconditionError: It has ended.
        UnavailableError: It does not listen after five minutes.
    """
    deadline = SYSTEM_CLOCK.monotonic() + _START_SECONDS
    while SYSTEM_CLOCK.monotonic() < deadline:
        task = services.experiments.get(key)
        if task.state.is_terminal:
            raise FailedPreconditionError(
                f"TensorBoard {task.id} has ended; `resolute tensorboard logs {task.id}` says why"
            )
        trial = next(services.trials.list(key, limit=1), None)
        endpoints = () if trial is None else services.trials.get(trial.uuid).endpoints
        if endpoints:
            return f"http://{endpoints[0]}/"
        time.sleep(_POLL_SECONDS)
    reason = task.explanation or task.shown_state
    raise UnavailableError(f"TensorBoard {task.id} does not listen yet: {reason}")


def _show(url: str, *, browser: bool) -> None:
    click.echo(f"TensorBoard is running at {url}")
    if browser and sys.stdout.isatty():
        click.launch(url)
