"""Rows of an experiment with one trial and one run, for tests of what launches and places runs."""

from __future__ import annotations

from typing import Any

from resolute.errors import UnavailableError
from resolute_serving.context import TrialRun

EXPERIMENT: dict[str, Any] = {
    "id": "e",
    "request_id": "r",
    "name": "digits",
    "description": "",
    "labels": [],
    "state": "ACTIVE",
    "archived": False,
    "owner": "ada",
    "workspace": "w",
    "project": "p",
    "config": {
        "resources": {"slots_per_trial": 1, "max_slots": None},
        "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
    },
    "progress": 0.0,
    "failure": "",
    "revision": 1,
    "created_at": 1.0,
    "definition_sha256": "",
    "definition_size": 4,
    "search_created": True,
    "action_cursor": 0,
}
TRIAL: dict[str, Any] = {
    "id": "t",
    "experiment_id": "e",
    "request_id": "r",
    "state": "COMPLETED",
    "hparams": {},
    "seed": 1,
    "restarts": 0,
    "run": 1,
    "status": "",
    "metadata": {},
    "explanation": "",
    "source_checkpoint_id": "",
    "latest_checkpoint_id": "",
    "steps_completed": 0,
    "settled_length": 0,
    "closed": True,
    "kill_requested": False,
    "queued_at": 1.0,
    "created_at": 1.0,
}
RUN: dict[str, Any] = {
    "trial_id": "t",
    "experiment_id": "e",
    "failure": "",
    "slot_ids": [0],
    "started_at": 2.0,
    "trace_id": "trace",
    "signal_revision": 0,
    "preempt": False,
    "kill": False,
    "signal_reason": "",
    "acknowledged": False,
}


async def no_directory(directory: str, workspace_id: int) -> str:
    """Makes the directory of a workspace, which no pool of the test has."""
    raise AssertionError(f"no pool has directories of workspaces, and {directory} was asked for")


class Tokens:
    """Issues tokens of runs, except while it is told to fail."""

    def __init__(self) -> None:
        self.failures = 0
        self.issued: list[TrialRun] = []
        """Whom they were for."""

    def issue(self, run: TrialRun) -> str:
        """Issues the token of a run, or raises."""
        if self.failures:
            self.failures -= 1
            raise UnavailableError("away for a moment")
        self.issued.append(run)
        return "token"
