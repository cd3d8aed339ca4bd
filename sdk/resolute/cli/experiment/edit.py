"""``resolute experiment set name|description`` and ``resolute experiment label add|remove``."""

from __future__ import annotations

from collections.abc import Callable

import click

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
    click.echo(f"experiment {record.id} has another description")


@click.command(name="add")
@_ID
@click.argument("label")
@click.pass_obj
def add_label(settings: Settings, experiment_id: str, label: str) -> None:
    """Add LABEL to experiment ID."""
    _change_labels(settings, experiment_id, lambda labels: [*(one for one in labels if one != label), label])


@click.command(name="remove")
@_ID
@click.argument("label")
@click.pass_obj
def remove_label(settings: Settings, experiment_id: str, label: str) -> None:
    """Remove LABEL from experiment ID."""
    _change_labels(settings, experiment_id, lambda labels: [one for one in labels if one != label])


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
