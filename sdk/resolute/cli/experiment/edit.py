"""``resolute experiment set …`` and ``resolute experiment label add|remove``."""

from __future__ import annotations

from collections.abc import Callable

import click

from resolute.cli.cluster.jobs import MAX_SLOTS, PRIORITY, WEIGHT, change_job
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.errors import ConflictError

_ATTEMPTS = 5
_ID = click.argument("experiment_id", metavar="ID", type=EXPERIMENT)


@click.command(name="name")
@_ID
@click.argument("name")
@click.pass_obj
def set_name(settings: Settings, experiment_id: str, name: str) -> None:
    """Give experiment ID the name NAME."""
    record = settings.services().experiments.update(experiment_id, name=name)
    click.echo(f"experiment {record.id} is called {record.name}")


@click.command(name="description")
@_ID
@click.argument("description")
@click.pass_obj
def set_description(settings: Settings, experiment_id: str, description: str) -> None:
    """Give experiment ID the description DESCRIPTION."""
    record = settings.services().experiments.update(experiment_id, description=description)
    click.echo(f"experiment {record.id} has a new description")


@click.command(name="notes")
@_ID
@click.argument("notes")
@click.pass_obj
def set_notes(settings: Settings, experiment_id: str, notes: str) -> None:
    """Replace the notes of experiment ID by NOTES."""
    record = settings.services().experiments.update(experiment_id, notes=notes)
    click.echo(f"experiment {record.id} has new notes")


@click.command(name="priority")
@_ID
@click.argument("priority", type=PRIORITY)
@click.pass_obj
def set_priority(settings: Settings, experiment_id: str, priority: int) -> None:
    """Give experiment ID the priority PRIORITY, from 1 (highest) to 99."""
    change_job(settings, experiment_id, priority=priority)


@click.command(name="weight")
@_ID
@click.argument("weight", type=WEIGHT)
@click.pass_obj
def set_weight(settings: Settings, experiment_id: str, weight: float) -> None:
    """Give experiment ID the weight WEIGHT among experiments of equal priority."""
    change_job(settings, experiment_id, weight=weight)


@click.command(name="max-slots")
@_ID
@click.argument("max_slots", type=MAX_SLOTS)
@click.pass_obj
def set_max_slots(settings: Settings, experiment_id: str, max_slots: int) -> None:
    """Limit experiment ID to MAX_SLOTS slots at a time; 0 for no limit."""
    change_job(settings, experiment_id, max_slots=max_slots)


@click.command(name="add")
@_ID
@click.argument("label")
@click.pass_obj
def add_label(settings: Settings, experiment_id: str, label: str) -> None:
    """Add LABEL to experiment ID."""
    _change_labels(
        settings, experiment_id, lambda labels: [*(kept for kept in labels if kept != label), label]
    )


@click.command(name="remove")
@_ID
@click.argument("label")
@click.pass_obj
def remove_label(settings: Settings, experiment_id: str, label: str) -> None:
    """Remove LABEL from experiment ID."""
    _change_labels(settings, experiment_id, lambda labels: [kept for kept in labels if kept != label])


def _change_labels(
    settings: Settings, experiment_id: str, change: Callable[[tuple[str, ...]], list[str]]
) -> None:
    """Changes the labels as they were read; reads them again when somebody else changed them meanwhile."""
    experiments = settings.services().experiments
    for attempt in range(1, _ATTEMPTS + 1):
        before = experiments.get(experiment_id)
        try:
            record = experiments.update(experiment_id, labels=change(before.labels), etag=before.etag)
        except ConflictError:
            if attempt == _ATTEMPTS:
                raise
        else:
            click.echo(f"experiment {record.id} has the labels: {', '.join(record.labels) or 'none'}")
            return
