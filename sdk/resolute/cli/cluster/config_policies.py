"""``resolute config-policies describe|set|delete``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from resolute.cli.display.output import json_option, print_json, print_yaml
from resolute.cli.options.settings import Settings
from resolute.client.submission.config import read_config

_WORKLOADS = ("experiment", "tasks")


def _experiments_only(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value == "tasks":
        raise click.UsageError("Tasks have no separate policies; those for experiments apply to them.")
    return value


_WORKLOAD = click.argument("workload", type=click.Choice(_WORKLOADS), callback=_experiments_only)
_WORKSPACE = click.option(
    "-w", "--workspace-name", "workspace", help="The policies of this workspace; without it the cluster's."
)


@click.command()
@_WORKLOAD
@_WORKSPACE
@json_option
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML, which is the default.")
@click.pass_obj
def describe(settings: Settings, workload: str, workspace: str | None, as_json: bool, as_yaml: bool) -> None:
    """Print the policies for configs of a WORKLOAD, which is `experiment`."""
    del workload, as_yaml
    document = _document(settings, workspace)
    if as_json:
        print_json(document)
    else:
        print_yaml(document)


@click.command(name="set")
@_WORKLOAD
@click.argument("config_file", type=click.Path(path_type=Path))
@_WORKSPACE
@click.pass_obj
def set_(settings: Settings, workload: str, config_file: Path, workspace: str | None) -> None:
    """Set the policies for configs of a WORKLOAD, which is `experiment`, from the YAML file CONFIG_FILE.

    They replace all that were set there. Experiments that were submitted before stay as they are.
    """
    del workload
    _, warnings = settings.services().config_policies.set(read_config(config_file), workspace=workspace)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"the config policies of {_whose(workspace)} are set")


@click.command()
@_WORKLOAD
@_WORKSPACE
@click.pass_obj
def delete(settings: Settings, workload: str, workspace: str | None) -> None:
    """Delete the policies for configs of a WORKLOAD, which is `experiment`."""
    del workload
    settings.services().config_policies.delete(workspace=workspace)
    click.echo(f"the config policies of {_whose(workspace)} are deleted")


def _document(settings: Settings, workspace: str | None) -> dict[str, Any]:
    """Policies as they are written: what is not set is left out."""
    policies = settings.services().config_policies.get(workspace=workspace)
    constraints: dict[str, Any] = {}
    if policies.max_slots is not None:
        constraints["resources"] = {"max_slots": policies.max_slots}
    if policies.priority_limit is not None:
        constraints["priority_limit"] = policies.priority_limit
    parts = {"invariant_config": policies.invariant_config, "constraints": constraints}
    return {name: part for name, part in parts.items() if part}


def _whose(workspace: str | None) -> str:
    return "the cluster" if workspace is None else f"workspace {workspace}"
