"""``resolute import find|table``: the new numbers of imported objects, by their old ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from resolute.cli.options.settings import Settings

if TYPE_CHECKING:
    from resolute.client.services import Services
    from resolute.imports.identifiers import OldName


@click.command()
@click.argument("kind", type=click.Choice(["experiment", "trial"]))
@click.argument("number", type=int)
@click.pass_obj
def find(settings: Settings, kind: str, number: int) -> None:
    """Show where something imported is now.

    NUMBER is the number on the other cluster. Checkpoints keep their UUIDs, models their names.
    """
    from resolute.api.experiments.v1.imports_service_pb2 import ListImportedRequest
    from resolute.imports.identifiers import OldName

    trial = kind == "trial"
    request = (
        ListImportedRequest(trial_number=number) if trial else ListImportedRequest(experiment_number=number)
    )
    found = settings.services().imports.find(request)
    for moved in found:
        old = OldName.parse(moved.external_id)
        if old is not None:
            click.echo(f"{kind} {number} of cluster {old.cluster_id} is {kind} {moved.number} here")
    if not found:
        raise click.ClickException(f"no {kind} {number} was imported; `resolute import table` lists what was")


@click.command()
@click.pass_obj
def table(settings: Settings) -> None:
    """List everything imported, as CSV: its kind, cluster and number there, its number and UUID here."""
    from resolute.cli.display.tables.csv_rows import write_rows
    from resolute.cli.display.terminal import for_programs

    rows = _moved(settings.services())
    write_rows(for_programs(), ["kind", "cluster", "old", "new", "uuid"], rows)


def _moved(services: Services) -> Iterator[tuple[str, str, int, int, str]]:
    """The rows of the table: each experiment, then its trials."""
    from resolute.imports.identifiers import OldName

    for name, number, uuid in _experiments(services):
        yield name.kind, name.cluster_id, name.number, number, uuid
        for trial in services.trials.list(number):
            old = OldName.parse(trial.external_id)
            if old is not None:
                yield old.kind, old.cluster_id, old.number, trial.id, trial.uuid


def _experiments(services: Services) -> Iterator[tuple[OldName, int, str]]:
    """The imported experiments, oldest first, with their numbers and UUIDs here."""
    from resolute.client.remote.experiments import ExperimentFilter
    from resolute.imports.identifiers import OldName

    for experiment in services.experiments.list(ExperimentFilter(include_archived=True), order_by="number"):
        old = OldName.parse(experiment.external_id)
        if old is not None:
            yield old, experiment.id, experiment.uuid
