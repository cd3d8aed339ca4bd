"""Arguments and output that the commands about models share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import yaml

from resolute.cli.display.output import Column, Format, print_items
from resolute.client.schema.records import ModelVersionRecord

_COLUMNS: tuple[Column[ModelVersionRecord], ...] = (
    Column("Version", lambda version: version.version, right=True),
    Column("Name", lambda version: version.name),
    Column("Steps", lambda version: version.checkpoint.steps_completed, right=True),
    Column("Registered", lambda version: version.create_time),
    Column("Comment", lambda version: version.comment),
    Column("Checkpoint", lambda version: version.checkpoint.uuid, kept=True),
)


def parse_metadata(pairs: Iterable[str]) -> dict[str, Any]:
    """Reads ``KEY=VALUE`` words; values are YAML, so that numbers are numbers.

    Raises:
        click.UsageError: One has no ``=``, or its value is no YAML.
    """
    metadata: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"--metadata {pair!r}: write KEY=VALUE")
        try:
            metadata[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise click.UsageError(f"--metadata {pair!r}: {value!r} is no YAML; put it in quotes") from error
    return metadata


def print_version_list(versions: Iterable[ModelVersionRecord], *, output: Format) -> None:
    """Prints versions of a model."""
    print_items(versions, _COLUMNS, output=output)
