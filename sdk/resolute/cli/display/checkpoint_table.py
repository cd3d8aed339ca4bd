"""Checkpoints as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import click

from resolute.cli.display.output import Column, Format, print_items, print_json
from resolute.cli.display.rendering import rendering
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint
from resolute.client.schema.records import CheckpointRecord
from resolute.contracts.sizes import human_size

INHERITED = (
    "they were written before this cluster was restored or copied, and the original may need their files; "
    "if it is gone for good, `resolute take-over` makes them this cluster's own"
)
"""Why the files of some checkpoints stay when the checkpoints are deleted."""
_REASONS: Mapping[str, str] = {
    "experiment_best": "best of the experiment",
    "trial_best": "best of the trial",
    "trial_latest": "latest",
    "milestone": "milestone",
    "restorable": "the trial can continue from it",
    "good": "the guard would go back to it",
    "source": "another trial began from it",
    "held": "being read",
    "pinned": "pinned or registered",
    "awaits_reports": "reports are on their way",
}


def print_checkpoints(items: Sequence[ValidatedCheckpoint], *, metric: str, output: Format) -> None:
    """Prints checkpoints with the validations at their steps.

    Args:
        items: The checkpoints.
        metric: The metric to show beside them.
        output: The format.
    """
    if output is Format.JSON:
        print_json_of(items)
        return
    sized = output is Format.TABLE
    columns: tuple[Column[ValidatedCheckpoint], ...] = (
        Column("Trial", lambda item: item.trial.id if item.trial else None, right=True),
        Column("Steps", lambda item: item.checkpoint.steps_completed, right=True),
        Column(metric or "Metric", lambda item: item.metrics.get(metric), right=True),
        Column("State", lambda item: _state(item.checkpoint), kept=True),
        Column("Kept as", lambda item: shown_reasons(item.checkpoint.keep_reasons)),
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


def shown_reasons(keep_reasons: Sequence[str]) -> str:
    """Why a policy keeps a checkpoint, for people: ``best of the trial, latest``."""
    return ", ".join(_REASONS.get(reason, reason) for reason in keep_reasons)


def print_json_of(items: Sequence[ValidatedCheckpoint]) -> None:
    """Prints checkpoints as JSON, each with the number of its trial and the validation at its steps."""
    print_json(items if rendering() is not None else [_flat(item) for item in items])


def _flat(item: ValidatedCheckpoint) -> dict[str, Any]:
    own = {field.name: getattr(item.checkpoint, field.name) for field in fields(item.checkpoint)}
    trial_id = item.trial.id if item.trial else None
    return {**own, "trial_id": trial_id, "validation_metrics": dict(item.metrics)}


def _state(checkpoint: CheckpointRecord) -> str:
    return f"{checkpoint.state.name} (inherited)" if checkpoint.inherited else checkpoint.state.name
