"""Checkpoints as tables."""

from __future__ import annotations

from collections.abc import Sequence

import click

from resolute.cli.display.output import Column, Format, print_items, print_json
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint
from resolute.client.schema.records import CheckpointRecord
from resolute.contracts.sizes import human_size

INHERITED = (
    "they were written before this cluster was restored or copied, and the original may need their files; "
    "if it is gone for good, `resolute take-over` makes them this cluster's own"
)
"""Why the files of some checkpoints stay, whoever deletes them."""


def print_checkpoints(items: Sequence[ValidatedCheckpoint], *, metric: str, output: Format) -> None:
    """Prints checkpoints with the validations at their steps.

    Args:
        items: The checkpoints.
        metric: The metric to show beside them.
        output: The format.
    """
    if output is Format.JSON:
        print_json(
            [
                {
                    "trial_id": item.trial.id if item.trial else None,
                    "checkpoint": item.checkpoint,
                    "validation_metrics": dict(item.metrics),
                }
                for item in items
            ]
        )
        return
    sized = output is Format.TABLE
    columns: tuple[Column[ValidatedCheckpoint], ...] = (
        Column("Trial", lambda item: item.trial.id if item.trial else None, right=True),
        Column("Steps", lambda item: item.checkpoint.steps_completed, right=True),
        Column(metric or "Metric", lambda item: item.metrics.get(metric), right=True),
        Column("State", lambda item: _state(item.checkpoint), kept=True),
        Column("Committed", lambda item: item.checkpoint.commit_time),
        Column(
            "Size",
            lambda item: human_size(item.checkpoint.total_size) if sized else item.checkpoint.total_size,
            right=True,
        ),
        Column("UUID", lambda item: item.checkpoint.uuid, kept=True),
    )
    print_items(items, columns, output=output)
    if sized and any(item.checkpoint.inherited for item in items):
        click.echo(f"Inherited checkpoints are kept: {INHERITED}", err=True)


def _state(checkpoint: CheckpointRecord) -> str:
    return f"{checkpoint.state.value} (inherited)" if checkpoint.inherited else checkpoint.state.value
