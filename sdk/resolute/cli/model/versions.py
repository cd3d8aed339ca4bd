"""``resolute model register-version|list-versions|describe-version|download|delete-version``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.checkpoint.fetch import fetch
from resolute.cli.display.output import Format, format_option, json_option, print_fields, print_json
from resolute.cli.model.common import parse_metadata, print_version_list
from resolute.cli.options import completions
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.identifiers import CHECKPOINT
from resolute.cli.options.settings import Settings
from resolute.client.remote.models import ModelUpdate

_VERSION = click.IntRange(min=1)


@click.command(name="register-version")
@click.argument("model", shell_complete=completions.models)
@click.argument("uuid", type=CHECKPOINT)
@click.option("--name", default="", help="Name of the version.")
@click.option("--comment", default="", help="Comment in one line.")
@click.option("--notes", default="", help="Notes.")
@click.option("--label", "labels", multiple=True, help="Label. Repeatable.")
@click.option(
    "--metadata", "pairs", multiple=True, metavar="KEY=VALUE", help="Arbitrary metadata. Repeatable."
)
@json_option
@click.pass_obj
def register_version(  # noqa: PLR0913, PLR0917 - click hands over every option
    settings: Settings,
    model: str,
    uuid: str,
    name: str,
    comment: str,
    notes: str,
    labels: tuple[str, ...],
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Register the checkpoint UUID as the next version of MODEL, which protects it from deletion."""
    changes = ModelUpdate(
        name=name, description=comment, notes=notes, labels=labels, metadata_patch=parse_metadata(pairs)
    )
    version = settings.services().models.register(model, uuid, changes)
    if as_json:
        print_json(version)
    else:
        click.echo(f"checkpoint {uuid} is version {version.version} of model {version.model_name}")


@click.command(name="list-versions")
@click.argument("model", shell_complete=completions.models)
@format_option
@click.pass_obj
def list_versions(settings: Settings, model: str, output: Format) -> None:
    """List the versions of MODEL, newest first."""
    print_version_list(settings.services().models.versions(model), output=output)


@click.command(name="describe-version")
@click.argument("model", shell_complete=completions.models)
@click.argument("version", type=_VERSION, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def describe_version(settings: Settings, model: str, version: int | None, as_json: bool) -> None:
    """Show a version of MODEL: VERSION, or the latest."""
    record = settings.services().models.version(model, version)
    if as_json:
        print_json(record)
        return
    click.secho(f"Model {record.model_name}, version {record.version}", bold=True)
    print_fields(
        [
            ("Name", record.name or None),
            ("Comment", record.comment or None),
            ("Checkpoint", record.checkpoint.uuid),
            ("Steps", record.checkpoint.steps_completed),
            ("Registered", record.create_time),
            ("Owner", record.owner),
            ("Labels", ", ".join(record.labels) or None),
            ("Metadata", record.metadata or None),
            ("Notes", record.notes or None),
        ]
    )


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.argument("version", type=_VERSION, required=False)
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), help="Target directory [downloads/UUID]."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the directory.")
@click.pass_obj
def download(
    settings: Settings, model: str, version: int | None, output_dir: Path | None, quiet: bool
) -> None:
    """Download the files of a version of MODEL: VERSION, or the latest."""
    services = settings.services()
    record = services.models.version(model, version)
    fetch(services, services.checkpoints.get(record.checkpoint.uuid), output_dir, quiet=quiet)


@click.command(name="delete-version")
@click.argument("model", shell_complete=completions.models)
@click.argument("version", type=_VERSION)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete_version(settings: Settings, model: str, version: int, yes: bool) -> None:
    """Delete a version of MODEL. Its checkpoint is kept, but no longer protected from deletion."""
    if not yes:
        confirm(f"Remove version {version} of model {model}?")
    settings.services().models.delete_version(model, version)
    click.echo(f"version {version} of model {model} is removed")
