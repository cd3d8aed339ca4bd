"""Commands and TensorBoards as `det command` and `det tensorboard` print them."""

from __future__ import annotations

from typing import Any

from resolute.cli.determined.experiments import config_of, pool_of
from resolute.cli.determined.spelling import moment, services
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentState

_STATES = {"QUEUED": "QUEUED", "STARTING": "STARTING", "RUNNING": "RUNNING", "STOPPING": "TERMINATING"}


def _document(task: ExperimentRecord) -> dict[str, Any]:
    return {
        "container": None,
        "description": task.description,
        "displayName": task.owner,
        "exitStatus": _exit_status(task),
        "id": str(task.id),
        "jobId": task.uuid,
        "resourcePool": pool_of(task),
        "startTime": moment(task.create_time),
        "state": _state(task),
        "userId": task.owner_id,
        "username": task.owner,
        "workspaceId": task.workspace_id,
        "workspaceName": task.workspace,
    }


def _state(task: ExperimentRecord) -> str:
    if task.state.is_terminal:
        return "TERMINATED"
    return _STATES.get(task.activity, "WAITING")


def _exit_status(task: ExperimentRecord) -> str:
    """The words of the end; "0" where the last run exited with success."""
    if not task.state.is_terminal:
        return "N/A"
    trials = list(services().trials.list(task.uuid))
    runs = services().trials.get(trials[0].uuid).runs if trials else ()
    if runs and runs[-1].exit_code is not None:
        return "success" if runs[-1].exit_code == 0 else f"exit code {runs[-1].exit_code}"
    return "success" if task.state is ExperimentState.COMPLETED else task.state.name.lower()


def _watched(task: ExperimentRecord) -> dict[str, Any]:
    return {
        **_document(task),
        "experimentIds": _sources(task, "experiment"),
        "serviceAddress": None,
        "trialIds": _sources(task, "trial"),
    }


def _sources(task: ExperimentRecord, noun: str) -> list[int]:
    """The numbers of what a TensorBoard shows."""
    data = config_of(task).get("data") or {}
    names = [source["name"].split() for source in (data.get("tensorboard") or {}).get("sources", ())]
    return [int(number) for kind, number in names if kind == noun]


def _columns(*names: str) -> tuple[Heading, ...]:
    return tuple(Heading(name, _value_of(name)) for name in names)


def _value_of(name: str) -> Any:
    return lambda row: row[name]


_COMMANDS = _columns("id", "username", "description", "state", "exitStatus", "resourcePool", "workspaceName")
_TENSORBOARDS = (*_COMMANDS[:4], *_columns("experimentIds", "trialIds"), *_COMMANDS[4:])


def _commands(commands: list[ExperimentRecord]) -> list[dict[str, Any]]:
    return [_document(command) for command in commands]


def _tensorboards(tensorboards: list[ExperimentRecord]) -> list[dict[str, Any]]:
    return [_watched(tensorboard) for tensorboard in tensorboards]


RENDERINGS = {
    "command list": Rendering(_commands, (Table(_COMMANDS, _commands),)),
    "command describe": Rendering(lambda found: _document(found[0]), (Table(_COMMANDS, _commands),)),
    "tensorboard list": Rendering(_tensorboards, (Table(_TENSORBOARDS, _tensorboards),)),
}
"""By the words of the command."""
