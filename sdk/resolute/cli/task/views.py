"""``resolute command|tensorboard list|describe|config|logs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from resolute.cli.display.log_lines import LogRequest, log_options
from resolute.cli.display.output import Column, Format, format_option, print_items, print_yaml
from resolute.cli.experiment.views.logs import show_first_trial
from resolute.cli.options.settings import Settings
from resolute.cli.options.sorting import sort_options
from resolute.cli.task.kinds import NOUNS, TASK, find
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentKind

COLUMNS: tuple[Column[ExperimentRecord], ...] = (
    Column("ID", lambda task: task.id, right=True),
    Column("Description", lambda task: task.description),
    Column("State", lambda task: task.shown_state, kept=True),
    Column("Owner", lambda task: task.owner),
    Column("Workspace", lambda task: task.workspace),
    Column("Created", lambda task: task.create_time),
    Column("Ended", lambda task: task.end_time),
    Column("Why it waits", lambda task: task.explanation, note=True),
)
_FIELDS: dict[str, Callable[[ExperimentRecord], object]] = {
    "id": lambda task: task.id,
    "description": lambda task: task.description,
    "startTime": lambda task: task.create_time,
    "state": lambda task: task.shown_state,
    "username": lambda task: task.owner,
    "workspaceName": lambda task: task.workspace,
}
_Sort = Callable[[Iterable[ExperimentRecord]], list[ExperimentRecord]]


def _list(kind: ExperimentKind) -> click.Command:
    @click.command(name="list", help=f"List your tasks of the kind {NOUNS[kind]}, newest first.")
    @click.option("-q", "--quiet", is_flag=True, help="Print only the numbers.")
    @click.option("-a", "--all", "of_all", is_flag=True, help="Also those of other users.")
    @click.option("-w", "--workspace-name", "workspace", help="Only those in this workspace.")
    @sort_options(_FIELDS)
    @format_option
    @click.pass_obj
    def list_(
        settings: Settings, quiet: bool, of_all: bool, workspace: str | None, sort: _Sort, output: Format
    ) -> None:
        services = settings.services()
        chosen = services.workspaces.get(workspace) if workspace is not None else None
        wanted = ExperimentFilter(
            kinds=(kind,),
            owners=() if of_all else (services.cluster.current_user(),),
            workspace_ids=() if chosen is None else (chosen.id,),
            include_archived=True,
        )
        tasks = sort(services.experiments.list(wanted))
        if quiet:
            for task in tasks:
                click.echo(task.id)
        else:
            print_items(tasks, COLUMNS, output=output)

    return list_


def _describe(kind: ExperimentKind) -> click.Command:
    @click.command(name="describe", help=f"Show a {NOUNS[kind]}.")
    @click.argument("task", type=TASK)
    @format_option
    @click.pass_obj
    def describe(settings: Settings, task: str, output: Format) -> None:
        print_items([find(settings.services(), task, kind)], COLUMNS, output=output)

    return describe


def _config(kind: ExperimentKind) -> click.Command:
    @click.command(name="config", help=f"Print the config of a {NOUNS[kind]}.")
    @click.argument("task", type=TASK)
    @click.pass_obj
    def config(settings: Settings, task: str) -> None:
        print_yaml(find(settings.services(), task, kind).config)

    return config


def _logs(kind: ExperimentKind) -> click.Command:
    @click.command(name="logs", help=f"Show the log of a {NOUNS[kind]}.")
    @click.argument("task", type=TASK)
    @log_options
    @click.pass_obj
    def logs(settings: Settings, task: str, request: LogRequest) -> None:
        services = settings.services()
        show_first_trial(services, find(services, task, kind).uuid, request)

    return logs


list_commands = _list(ExperimentKind.COMMAND)
list_tensorboards = _list(ExperimentKind.TENSORBOARD)
describe_command = _describe(ExperimentKind.COMMAND)
command_config = _config(ExperimentKind.COMMAND)
tensorboard_config = _config(ExperimentKind.TENSORBOARD)
command_logs = _logs(ExperimentKind.COMMAND)
tensorboard_logs = _logs(ExperimentKind.TENSORBOARD)
