"""``resolute checkpoint describe``."""

from __future__ import annotations

import click

from resolute.cli.display.checkpoint_table import INHERITED, print_json_of
from resolute.cli.display.output import Column, Format, print_fields, print_items
from resolute.cli.display.rendering import rendering
from resolute.cli.options.identifiers import CHECKPOINTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint, with_validations
from resolute.client.schema.records import DirectoryStorage, FileRecord
from resolute.client.services import Services
from resolute.contracts.sizes import human_size

_FILE_COLUMNS: tuple[Column[FileRecord], ...] = (
    Column("File", lambda file: file.path),
    Column("Size", lambda file: human_size(file.size), right=True),
    Column("Digest", lambda file: file.digest),
)

_HOME: Column[FileRecord] = Column("Lies at", lambda file: file.home or "this checkpoint")


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def describe(settings: Settings, uuids: tuple[str, ...], as_json: bool) -> None:
    """Show checkpoints with their files, metadata and validation."""
    services = settings.services()
    checkpoints = [_read(services, uuid) for uuid in uuids]
    if as_json:
        print_json_of(checkpoints)
        return
    if rendering() is not None:
        print_items(checkpoints, (), output=Format.TABLE)
        return
    for item in checkpoints:
        _show(item)


def _read(services: Services, uuid: str) -> ValidatedCheckpoint:
    record = services.checkpoints.get(uuid)
    trials = [services.trials.get(record.trial_uuid)] if record.trial_uuid else []
    return with_validations([record], trials, metrics=services.metrics)[0]


def _show(item: ValidatedCheckpoint) -> None:
    record = item.checkpoint
    click.secho(f"Checkpoint {record.uuid}", bold=True)
    directory = record.storage.path if isinstance(record.storage, DirectoryStorage) else ""
    print_fields(
        [
            ("State", record.state),
            ("Experiment", item.trial.experiment_id if item.trial else None),
            ("Trial", item.trial.id if item.trial else None),
            ("Run", record.run or None),
            ("Steps", record.steps_completed),
            ("Validation", dict(item.metrics)),
            ("Hyperparameters", item.trial.hparams if item.trial else None),
            ("Committed", record.commit_time),
            ("Pinned", "yes" if record.pinned else None),
            ("Inherited", "yes" if record.inherited else None),
            ("Size", human_size(record.total_size)),
            ("Lies in", f"{directory}/{record.uuid}" if directory else record.storage),
            ("Metadata", record.metadata),
        ]
    )
    if record.inherited:
        click.echo(f"Inherited checkpoints are kept: {INHERITED}")
    click.echo()
    shared = any(file.home for file in record.files)
    print_items(record.files, (*_FILE_COLUMNS, _HOME) if shared else _FILE_COLUMNS, output=Format.TABLE)
    click.echo()
