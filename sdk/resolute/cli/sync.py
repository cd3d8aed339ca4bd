"""``resolute sync``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.options.settings import Settings


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Timeout in seconds for each run.",
)
@click.pass_obj
def sync(settings: Settings, directory: Path, timeout: float) -> None:
    """Upload runs that were recorded offline.

    DIRECTORY is the offline_dir of core.init, the directory that core_v2 names when it finds no cluster, or
    one run in either. Each run becomes an ended trial. The directory records what was uploaded, so the
    command can be repeated.
    """
    from resolute.core.unmanaged.sync import SyncResult, sync_all
    from resolute.runtime.offline_run import find_runs

    failures = list[str]()

    def report(failure: Exception) -> None:
        failures.append(str(failure))
        click.echo(f"not sent: {failure}", err=True)

    runs = find_runs(directory, unreadable=report)
    if not runs and not failures:
        raise click.ClickException(
            f"no recorded run lies in {directory}; give the directory that the script recorded in"
        )
    services = settings.services()
    for run, done in sync_all(services, runs, timeout=timeout):
        if not isinstance(done, SyncResult):
            report(done)
            continue
        click.echo(f"{run.directory.name}: trial {done.trial.id} of experiment {done.trial.experiment_id}")
        for refusal in done.refusals:
            click.echo(f"  not kept: {refusal}", err=True)
    if failures:
        raise click.ClickException(f"{len(failures)} of the runs in {directory} could not be sent, see above")
