"""``resolute model create|list|describe|set|move|archive|unarchive|delete``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    json_option,
    print_fields,
    print_items,
    print_json,
)
from resolute.cli.model.common import parse_metadata, print_version_list
from resolute.cli.options import completions
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.settings import Settings
from resolute.cli.options.sorting import sort_options
from resolute.client.remote.models import ModelFilter, ModelUpdate
from resolute.client.schema.records import ModelRecord

_COLUMNS: tuple[Column[ModelRecord], ...] = (
    Column("ID", lambda model: model.id, right=True),
    Column("Name", lambda model: model.name),
    Column("Versions", lambda model: model.version_count, right=True),
    Column("Workspace", lambda model: model.workspace),
    Column("Labels", lambda model: ", ".join(model.labels)),
    Column("Updated", lambda model: model.update_time),
    Column("Archived", lambda model: "yes" if model.archived else ""),
)
_SORT_FIELDS: dict[str, Callable[[ModelRecord], Any]] = {
    "name": lambda model: model.name,
    "description": lambda model: model.description,
    "creation_time": lambda model: model.create_time,
    "last_updated_time": lambda model: model.update_time,
    "num_versions": lambda model: model.version_count,
    "workspace": lambda model: model.workspace,
}


@click.command()
@click.argument("name")
@click.option("--description", default="", help="Description in one line.")
@click.option("--label", "labels", multiple=True, help="Label. Repeatable.")
@click.option(
    "--metadata", "pairs", multiple=True, metavar="KEY=VALUE", help="Arbitrary metadata. Repeatable."
)
@click.option(
    "-w", "--workspace", "--workspace-name", "workspace", default="", help="Workspace of the model."
)
@json_option
@click.pass_obj
def create(
    settings: Settings,
    name: str,
    description: str,
    labels: tuple[str, ...],
    pairs: tuple[str, ...],
    workspace: str,
    as_json: bool,
) -> None:
    """Create the model NAME, under which checkpoints can be registered."""
    changes = ModelUpdate(description=description, labels=labels, metadata_patch=parse_metadata(pairs))
    model = settings.services().models.create(name, changes, workspace=workspace)
    if as_json:
        print_json(model)
    else:
        click.echo(f"model {model.name} has the number {model.id}")


@click.command(name="list")
@click.option("--name", default="", help="Only models whose name contains this.")
@click.option("--label", "labels", multiple=True, help="Only models with this label. Repeatable.")
@click.option(
    "-w",
    "--workspace",
    "--workspace-names",
    "workspaces",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="Only models of these workspaces. Repeatable.",
)
@click.option("-a", "--all", "all_", is_flag=True, help="Include archived models.")
@sort_options(_SORT_FIELDS)
@format_option
@click.pass_obj
def list_(
    settings: Settings,
    name: str,
    labels: tuple[str, ...],
    workspaces: tuple[str, ...],
    all_: bool,
    sort: Callable[..., Any],
    output: Format,
) -> None:
    """List models by name."""
    named = [one.strip() for names in workspaces for one in names.split(",")]
    wanted = ModelFilter(name=name, labels=labels, workspaces=named, include_archived=all_)
    print_items(sort(settings.services().models.list(wanted)), _COLUMNS, output=output)


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.option("--version", type=click.IntRange(min=1), help="Only this version.")
@json_option
@click.pass_obj
def describe(settings: Settings, model: str, version: int | None, as_json: bool) -> None:
    """Show MODEL (a name or a number) with its versions."""
    models = settings.services().models
    record = models.get(model)
    versions = list(models.versions(model)) if version is None else [models.version(model, version)]
    if as_json:
        print_json({"model": record, "versions": versions})
        return
    click.secho(f"Model {record.name} ({record.id})", bold=True)
    print_fields(
        [
            ("Description", record.description or None),
            ("Workspace", record.workspace),
            ("Owner", record.owner),
            ("Labels", ", ".join(record.labels) or None),
            ("Metadata", record.metadata or None),
            ("Archived", "yes" if record.archived else None),
            ("Created", record.create_time),
            ("Notes", record.notes or None),
        ]
    )
    click.echo()
    print_version_list(versions, output=Format.TABLE)


@click.command(name="set")
@click.argument("model", shell_complete=completions.models)
@click.option("--name", help="New name.")
@click.option("--description", help="Description in one line.")
@click.option("--notes", help="Notes.")
@click.option("--label", "labels", multiple=True, help="Replace the labels. Repeatable.")
@click.option("--metadata", "pairs", multiple=True, metavar="KEY=VALUE", help="Metadata to set. Repeatable.")
@click.option("--workspace", help="Move the model to this workspace.")
@click.pass_obj
def set_(
    settings: Settings,
    model: str,
    name: str | None,
    description: str | None,
    notes: str | None,
    labels: tuple[str, ...],
    pairs: tuple[str, ...],
    workspace: str | None,
) -> None:
    """Change the name, description and other fields of MODEL (a name or a number)."""
    changes = ModelUpdate(
        name=name,
        description=description,
        notes=notes,
        labels=labels or None,
        metadata_patch=parse_metadata(pairs) or None,
    )
    record = settings.services().models.update(model, changes, workspace=workspace)
    click.echo(f"model {record.name} is changed")


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.option("-w", "--workspace-name", required=True, metavar="NAME", help="The workspace.")
@click.pass_obj
def move(settings: Settings, model: str, workspace_name: str) -> None:
    """Move MODEL (a name or a number) to another workspace."""
    record = settings.services().models.update(model, ModelUpdate(), workspace=workspace_name)
    click.echo(f"model {record.name} belongs to workspace {record.workspace}")


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.pass_obj
def archive(settings: Settings, model: str) -> None:
    """Archive MODEL: it is hidden from lists and accepts no more versions."""
    record = settings.services().models.update(model, ModelUpdate(), archived=True)
    click.echo(f"model {record.name} is archived")


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.pass_obj
def unarchive(settings: Settings, model: str) -> None:
    """Unarchive MODEL: it is shown in lists and accepts versions again."""
    record = settings.services().models.update(model, ModelUpdate(), archived=False)
    click.echo(f"model {record.name} is not archived")


@click.command()
@click.argument("model", shell_complete=completions.models)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete(settings: Settings, model: str, yes: bool) -> None:
    """Delete MODEL with its versions. Their checkpoints are kept, but no longer protected from deletion."""
    models = settings.services().models
    record = models.get(model)
    if not yes:
        confirm(f"Remove the model {record.name} with {record.version_count} versions?")
    models.delete(model)
    click.echo(f"model {record.name} is removed")
