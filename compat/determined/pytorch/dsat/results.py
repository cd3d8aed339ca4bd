"""Reads the measurements of a trial, of which the search service stores only one number."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from resolute.client import Client
from resolute.errors import NotFoundError

_WAIT_SECONDS = 300.0
_POLL_SECONDS = 0.5


def read_results(experiment_id: int, request_id: uuid.UUID) -> Mapping[str, Any]:
    """Returns the last validation that a trial reported, and waits for it where it is still on its way.

    Args:
        experiment_id: Number of the experiment.
        request_id: Identifies the trial within its search.

    Raises:
        NotFoundError: It reported none.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    with Client() as client:
        trials = client.get_experiment(experiment_id).list_trials()
        trial = next(trial for trial in trials if trial._record.trial_key == str(request_id))
        while True:
            reports = list(trial.iter_metrics("validation"))
            if reports:
                return reports[-1].metrics
            if time.monotonic() > deadline:
                raise NotFoundError(f"trial {trial.id} completed its work and reported no validation")
            time.sleep(_POLL_SECONDS)
