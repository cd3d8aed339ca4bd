"""The state machines of experiments, trials, runs and allocations as tables of states, events and effects.

A test compares docs/lifecycle.md with them. Nothing here reads or writes the database.
"""

from resolute_experiments.states.allocation import (
    ALLOCATIONS,
    AllocationEffect,
    AllocationEvent,
    AllocationState,
)
from resolute_experiments.states.experiment import (
    ENDED_EXPERIMENTS,
    EXPERIMENTS,
    GONE_EXPERIMENTS,
    LIVE_EXPERIMENTS,
    STOPPING_EXPERIMENTS,
    ExperimentEffect,
    ExperimentEvent,
    ExperimentState,
)
from resolute_experiments.states.run import RUNS, RunEffect, RunEvent, RunOutcome
from resolute_experiments.states.table import Row, Step, Table
from resolute_experiments.states.trial import (
    ALLOCATED_TRIALS,
    ENDED_TRIALS,
    TRAINING_TRIALS,
    TRIALS,
    TrialEffect,
    TrialEvent,
    TrialState,
)

__all__ = [
    "ALLOCATED_TRIALS",
    "ALLOCATIONS",
    "ENDED_EXPERIMENTS",
    "ENDED_TRIALS",
    "EXPERIMENTS",
    "GONE_EXPERIMENTS",
    "LIVE_EXPERIMENTS",
    "RUNS",
    "STOPPING_EXPERIMENTS",
    "TRAINING_TRIALS",
    "TRIALS",
    "AllocationEffect",
    "AllocationEvent",
    "AllocationState",
    "ExperimentEffect",
    "ExperimentEvent",
    "ExperimentState",
    "Row",
    "RunEffect",
    "RunEvent",
    "RunOutcome",
    "Step",
    "Table",
    "TrialEffect",
    "TrialEvent",
    "TrialState",
]
