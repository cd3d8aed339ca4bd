"""``resolute task list|logs|kill``: the tasks of a cluster are its trials."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import TrialRecord

_COLUMNS: tuple[Column[TrialRecord], ...] = (
    Column("Trial", lambda trial: trial.id, right=True),
    Column("Experiment", lambda trial: trial.experiment_id, right=True),
    Column("State", lambda trial: trial.state),
    Column("Run", lambda trial: trial.run, right=True),
    Column("Created", lambda trial: trial.create_time),
    Column("Why it waits", lambda trial: trial.explanation, note=True),
)


@click.command(name="list")
@format_option
@click.pass_obj
def list_(settings: Settings, output: Format) -> None:
    """List the trials that have not ended, of all experiments in the queue."""
    services = settings.services()
    trials = (
        trial
        for job in services.jobs.list()
        for trial in services.trials.list(job.experiment_id)
        if not trial.state.is_terminal
    )
    print_items(sorted(trials, key=lambda trial: -trial.id), _COLUMNS, output=output)
