"""Simulates another search on the recorded curves of an experiment: its cost and its best result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from resolute.api.searcher.v1 import event_pb2, search_spec_pb2
from resolute.client.insight.decisions import search_event
from resolute.client.remote.searches import Curve, Searches, SimulationResult
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.errors import FailedPreconditionError


@dataclass(frozen=True, kw_only=True)
class RecordedTrial:
    """The learning curve that a trial reported to its search."""

    trial: int
    curve: Curve


@dataclass(frozen=True, kw_only=True)
class SimulatedOutcome:
    """A trial of the simulated search."""

    recorded: int
    """Number of the trial whose curve it follows."""
    length: int
    metric: float
    extrapolated: bool
    """Whether it trains beyond the recorded curve, whose last value is taken then."""
    repeated: bool
    """Whether an earlier trial follows the same curve, because fewer trials were recorded."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The cost and the best result of a search."""

    trials: int
    units: float
    """Training units in all."""
    best: float | None
    """Best metric at the end of a trial; None without any."""
    best_trial: int | None
    """Number of the recorded trial that it comes from."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The recorded search beside the simulated one."""

    recorded: Summary
    other: Summary
    trials: tuple[SimulatedOutcome, ...]
    """The trials of the other search, in the order of their creation."""
    extrapolated: int
    """How many of them train beyond their recorded curve."""


def recorded_trials(
    entries: Iterable[event_pb2.LogEntry], trials: Iterable[TrialRecord]
) -> list[RecordedTrial]:
    """Reads the learning curves of a search from its log, by the numbers of their trials."""
    numbers = {trial.trial_key: trial.id for trial in trials}
    points: dict[int, dict[float, float]] = {}
    for entry in entries:
        event = search_event(entry.event, numbers)
        is_report = event.trial is not None and event.metric is not None and event.length is not None
        if is_report and math.isfinite(event.metric or 0.0):
            points.setdefault(event.trial or 0, {})[event.length or 0.0] = event.metric or 0.0
    curves = {
        trial: Curve(tuple(sorted(metrics)), tuple(metrics[length] for length in sorted(metrics)))
        for trial, metrics in points.items()
    }
    return [RecordedTrial(trial=trial, curve=curves[trial]) for trial in sorted(curves)]


def what_if(
    searches: Searches,
    experiment: ExperimentRecord,
    spec: search_spec_pb2.SearchSpec,
    *,
    trials: Iterable[TrialRecord],
    slots: int = 0,
) -> WhatIf:
    """Runs another search on the curves that an experiment recorded. Nothing is trained.

    Args:
        searches: Calls of the searcher.
        experiment: What ran.
        spec: The other search.
        trials: The trials of the experiment.
        slots: Trials that train at once; 0 for as many as the search asks for.

    Raises:
        FailedPreconditionError: No trial has reported a validation to the search.
    """
    kinds = ("validation_completed", "validation_reported")
    recorded = recorded_trials(searches.log(experiment.uuid, kinds=kinds), trials)
    if not recorded:
        raise FailedPreconditionError(
            f"no trial of experiment {experiment.id} has reported a validation to its search, "
            "so there are no curves to simulate it with; simulate its config on synthetic curves instead"
        )
    result = searches.simulate(spec, curves=[trial.curve for trial in recorded], slots=slots)
    outcomes = _outcomes(result, recorded)
    smaller = experiment.smaller_is_better
    return WhatIf(
        recorded=_summary(
            [(trial.trial, trial.curve.lengths[-1], trial.curve.metrics[-1]) for trial in recorded],
            smaller=smaller,
        ),
        other=_summary(
            [(outcome.recorded, outcome.length, outcome.metric) for outcome in outcomes], smaller=smaller
        ),
        trials=tuple(outcomes),
        extrapolated=sum(outcome.extrapolated for outcome in outcomes),
    )


def _outcomes(result: SimulationResult, recorded: list[RecordedTrial]) -> list[SimulatedOutcome]:
    outcomes = []
    for number, simulated in enumerate(result.trials):
        followed = recorded[number % len(recorded)]  # the searcher takes curves in turn
        outcomes.append(
            SimulatedOutcome(
                recorded=followed.trial,
                length=simulated.length,
                metric=simulated.metric,
                extrapolated=simulated.length > followed.curve.lengths[-1],
                repeated=number >= len(recorded),
            )
        )
    return outcomes


def _summary(ends: list[tuple[int, float, float]], *, smaller: bool) -> Summary:
    finite = [(metric, trial) for trial, _, metric in ends if math.isfinite(metric)]
    best = (min if smaller else max)(finite, default=None, key=lambda end: end[0])
    return Summary(
        trials=len(ends),
        units=sum(length for _, length, _ in ends),
        best=None if best is None else best[0],
        best_trial=None if best is None else best[1],
    )
