"""``resolute experiment pause|activate|cancel|kill|archive|unarchive|delete|delete-tb-files|move``."""

from __future__ import annotations

from collections.abc import Callable

import click

from resolute.cli.failures import explain
from resolute.cli.options import completions
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.identifiers import EXPERIMENT, EXPERIMENTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ExperimentRecord
from resolute.errors import AuthError, ResoluteError, UnavailableError

_IDS = keys_argument("experiment_ids", metavar="ID[,ID...]", type_=EXPERIMENTS)


@click.command()
@_IDS
@click.pass_context
def pause(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Ask trials to checkpoint and exit; none is started again until `activate`."""
    _change(
        ctx, experiment_ids, lambda settings, key: settings.services().experiments.pause(key), "is pausing"
    )


@click.command()
@_IDS
@click.pass_context
def activate(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Resume paused experiments from their checkpoints."""
    _change(
        ctx, experiment_ids, lambda settings, key: settings.services().experiments.activate(key), "is active"
    )


@click.command()
@_IDS
@click.pass_context
def cancel(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Cancel experiments: trials are asked to checkpoint and exit."""
    _change(
        ctx, experiment_ids, lambda settings, key: settings.services().experiments.cancel(key), "is ending"
    )


@click.command()
@_IDS
@click.pass_context
def kill(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Stop experiments immediately, without a last checkpoint."""
    _change(
        ctx,
        experiment_ids,
        lambda settings, key: settings.services().experiments.kill(key),
        "is being killed",
    )


@click.command()
@_IDS
@click.pass_context
def archive(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Hide ended experiments from lists."""
    _change(
        ctx, experiment_ids, lambda settings, key: settings.services().experiments.archive(key), "is archived"
    )


@click.command()
@_IDS
@click.pass_context
def unarchive(ctx: click.Context, experiment_ids: tuple[str, ...]) -> None:
    """Show archived experiments in lists again."""

    def show(settings: Settings, key: str) -> ExperimentRecord:
        return settings.services().experiments.archive(key, archived=False)

    _change(ctx, experiment_ids, show, "is shown again")


@click.command()
@_IDS
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def delete(ctx: click.Context, experiment_ids: tuple[str, ...], yes: bool) -> None:
    """Delete ended experiments with their metrics, logs, checkpoints and code."""
    if not yes:
        names = ", ".join(experiment_ids)
        confirm(f"Remove experiment {names} with all metrics, logs and checkpoints?")
    _change(
        ctx,
        experiment_ids,
        lambda settings, key: settings.services().experiments.delete(key),
        "is being removed",
    )


def _change(
    ctx: click.Context,
    keys: tuple[str, ...],
    change: Callable[[Settings, str], ExperimentRecord],
    done: str,
) -> None:
    """Changes each experiment; one that refuses does not keep the others from changing."""
    settings = ctx.ensure_object(Settings)
    failed = False
    for key in keys:
        try:
            record = change(settings, key)
        except (AuthError, UnavailableError):
            raise  # the others would fail alike
        except ResoluteError as error:
            click.echo(explain(error, settings), err=True)
            failed = True
        else:
            click.echo(f"experiment {record.id} {done}")
    if failed:
        ctx.exit(1)


@click.command(name="delete-tb-files")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.pass_obj
def delete_tensorboard_files(settings: Settings, experiment_id: str) -> None:
    """Delete the TensorBoard files of an ended experiment. Its checkpoints and metrics are kept."""
    settings.services().experiments.delete_tensorboard_files(experiment_id)
    click.echo(f"the TensorBoard files of experiment {experiment_id} are deleted")


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("workspace", shell_complete=completions.workspaces)
@click.argument("project", shell_complete=completions.projects)
@click.pass_obj
def move(settings: Settings, experiment_id: str, workspace: str, project: str) -> None:
    """Move an experiment to PROJECT in WORKSPACE; to another workspace only if it has ended."""
    settings.services().workspaces.move(experiment_id, workspace=workspace, project=project)
    click.echo(f"experiment {experiment_id} belongs to {workspace}/{project}")
