"""Everything that an import has written, row by row, but for what says when and in which order it came."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.client import Client

_LATE = (
    *("best_value", "best_steps", "last_value", "last_steps"),
    *("reported_run", "reported_steps", "reported_at", "steps_per_second", "steps_due"),
)
"""Columns of trials that copy what the metrics service knows, a little later."""
_TABLES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "experiments": {
        "users": frozenset({"created_at"}),
        "workspaces": frozenset({"created_at"}),
        "workspace_roles": frozenset({"updated_at"}),
        "projects": frozenset({"created_at"}),
        "templates": frozenset({"updated_at"}),
        "config_policies": frozenset({"updated_at"}),
        "experiments": frozenset({"revision", "best_value", "best_steps", "best_trial"}),
        "definition_chunks": frozenset(),
        "trials": frozenset({"revision", *_LATE}),
        "trial_transitions": frozenset(),
        "runs": frozenset(),
    },
    "checkpoints": {
        "checkpoints": frozenset(),
        "files": frozenset(),
        "models": frozenset(),
        "model_versions": frozenset(),
    },
}
"""Columns that are left out, by table and database."""


def snapshot(home: Path, client: Client) -> dict[str, list[str]]:
    """Reads a home whose cluster runs: sorted rows by table, and the metrics and lines of every trial."""
    found: dict[str, list[str]] = {}
    for database, tables in _TABLES.items():
        connection = sqlite3.connect(f"file:{home}/databases/{database}.sqlite?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        for table, left_out in tables.items():
            rows = connection.execute(f"SELECT * FROM {table}")
            found[f"{database}.{table}"] = sorted(_text(row, left_out) for row in rows)
        connection.close()
    services = client.services
    for experiment in services.experiments.list(order_by="number"):
        for trial in services.trials.list(experiment.id):
            reports = [
                f"{one.group} {one.steps_completed} {one.end_time} {one.metrics}"
                for one in services.metrics.reports(trial)
            ]
            found[f"reports {trial.id}"] = reports
            found[f"lines {trial.id}"] = [
                f"{one.time} {one.level} {one.rank} {one.stdtype} {one.message}"
                for one in services.logs.list(trial.uuid)
            ]
    return found


def _text(row: sqlite3.Row, left_out: frozenset[str]) -> str:
    content: dict[str, Any] = {name: row[name] for name in row.keys() if name not in left_out}  # noqa: SIM118
    return json.dumps(content, default=repr, sort_keys=True)
