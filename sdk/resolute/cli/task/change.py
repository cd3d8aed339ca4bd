"""``resolute command|tensorboard kill`` and ``set priority``."""

from __future__ import annotations

import click

from resolute.cli.cluster.jobs import PRIORITY, change_job
from resolute.cli.failures import explain
from resolute.cli.options.settings import Settings
from resolute.cli.task.kinds import NOUNS, TASK, find
from resolute.client.schema.states import ExperimentKind
from resolute.errors import AuthError, ResoluteError, UnavailableError


def _kill(kind: ExperimentKind) -> click.Command:
    @click.command(name="kill", help=f"Stop a {NOUNS[kind]} at once, or several.")
    @click.argument("tasks", metavar="ID...", nargs=-1, required=True, type=TASK)
    @click.option("-f", "--force", is_flag=True, help="Exit with 0 also when one cannot be stopped.")
    @click.pass_context
    def kill(ctx: click.Context, tasks: tuple[str, ...], force: bool) -> None:
        settings, failed = ctx.ensure_object(Settings), False
        for key in tasks:
            try:
                task = settings.services().experiments.kill(find(settings.services(), key, kind).uuid)
            except (AuthError, UnavailableError):
                raise  # the others would fail alike
            except (ResoluteError, click.UsageError) as error:
                message = error.message if isinstance(error, click.UsageError) else explain(error, settings)
                click.echo(message, err=True)
                failed = True
            else:
                click.echo(f"{NOUNS[kind]} {task.id} is being killed")
        if failed and not force:
            ctx.exit(1)

    return kill


def _set_priority(kind: ExperimentKind) -> click.Command:
    @click.command(name="priority", help=f"Change the priority of a {NOUNS[kind]}: 1 (highest) to 99.")
    @click.argument("task", type=TASK)
    @click.argument("priority", type=PRIORITY)
    @click.pass_obj
    def set_priority(settings: Settings, task: str, priority: int) -> None:
        change_job(settings, find(settings.services(), task, kind).uuid, priority=priority)

    return set_priority


kill_command = _kill(ExperimentKind.COMMAND)
kill_tensorboard = _kill(ExperimentKind.TENSORBOARD)
set_command_priority = _set_priority(ExperimentKind.COMMAND)
set_tensorboard_priority = _set_priority(ExperimentKind.TENSORBOARD)
