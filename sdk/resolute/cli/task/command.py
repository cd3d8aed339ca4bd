"""``resolute command run``."""

from __future__ import annotations

import shlex

import click

from resolute.cli.experiment.create import Request, submit
from resolute.cli.options.settings import Settings
from resolute.cli.task.submission import TaskOptions, task_options, whole_config
from resolute.client.schema.states import ExperimentKind
from resolute.client.submission.config import config_text

_SHOWN = 100


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@task_options
@click.option("--template", default="", metavar="NAME", help="Use this template under the config.")
@click.pass_context
def run(ctx: click.Context, words: tuple[str, ...], task: TaskOptions, template: str) -> None:
    """Run a COMMAND on slots of the cluster, and follow its log.

    One word is a line of the shell; several are a program and its arguments. It gets one slot, or as many as
    `--config resources.slots=N` says. Nothing more urgent preempts them. When it must leave them
    nevertheless, because it was paused or its machine disabled, it is ended after 30 s and begins anew later.
    """
    services = ctx.ensure_object(Settings).services()
    text = words[0] if len(words) == 1 else shlex.join(words)
    description = f"Command ({text if len(text) <= _SHOWN else text[:_SHOWN] + '…'})"
    request = Request(
        config=config_text(whole_config(services, task, description=description, entrypoint=text)),
        model_definition=task.directory,
        includes=task.includes,
        template=template,
        git=task.directory is not None,
        kind=ExperimentKind.COMMAND,
    )
    submit(ctx, request, follow_it=not task.detach)
