"""The kinds of tasks, and the lookup of a task."""

from __future__ import annotations

import click

from resolute.cli.options.identifiers import Key
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentKind
from resolute.client.services import Services

NOUNS = {ExperimentKind.COMMAND: "command", ExperimentKind.TENSORBOARD: "TensorBoard"}
"""What messages call a task of each kind."""
TASK = Key("a task", listed_by="resolute command list")
"""The number or UUID of a task."""


def find(services: Services, key: str, kind: ExperimentKind) -> ExperimentRecord:
    """Returns a task of a kind, with its config.

    Raises:
        NotFoundError: Nothing has that number or UUID.
        click.UsageError: What has it is no such task.
    """
    record = services.experiments.get(key)
    if record.kind is not kind:
        is_ = NOUNS.get(record.kind, "experiment")
        raise click.UsageError(f"{key} is no {NOUNS[kind]} but {'an' if is_[0] == 'e' else 'a'} {is_}.")
    return record
