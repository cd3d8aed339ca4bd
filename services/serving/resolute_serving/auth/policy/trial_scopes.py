"""The scope of a trial's token, which is checked against fields of the request.

A request must not name a later run than the token's: a superseded run can add to its history, but cannot act
for its successor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resolute_serving.context import TrialRun

TrialScope = Callable[[TrialRun, Any], bool]
"""Whether a request stays within a run."""


def own_trial(run: TrialRun, request: Any) -> bool:
    """The request names the run's trial, and no later run."""
    return bool(request.trial_id == run.trial_id and getattr(request, "run", 0) <= run.run)


def only_own_trial(run: TrialRun, request: Any) -> bool:
    """The request asks for the run's trial and for no other."""
    return set(request.trial_ids) == {run.trial_id}


def own_allocation(run: TrialRun, request: Any) -> bool:
    """The request names the run's allocation."""
    return bool(request.allocation_id == run.allocation_id)


def only_own_allocation(run: TrialRun, request: Any) -> bool:
    """The request watches the run's allocation and no other."""
    return {each.allocation_id for each in request.subscriptions} == {run.allocation_id}


def own_experiment(run: TrialRun, request: Any) -> bool:
    """The request names the run's experiment by UUID."""
    named = request.experiment_id if hasattr(request, "experiment_id") else request.experiment.experiment_id
    return bool(named == run.experiment_id)


def own_begin(run: TrialRun, request: Any) -> bool:
    """The request begins a checkpoint of the run's own trial and experiment."""
    return own_trial(run, request) and own_experiment(run, request)


def checked_by_handler(_run: TrialRun, _request: Any) -> bool:
    """The handler compares the stored object's experiment or trial with the token."""
    return True
