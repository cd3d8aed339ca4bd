"""The importance of hyperparameters by Optuna's fANOVA, in worker processes."""

from __future__ import annotations

import json
import math
import random
import statistics
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import ValidationCompleted, ValidationReported
from resolute_searcher.log.operations import Create
from resolute_searcher.spec.space import DoubleRange, IntRange, Json, LogRange, Space

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

MIN_TRIALS = 3
"""With fewer results there is no importance."""
MAX_TRIALS = 256
"""Most results that are regarded."""
MAX_HPARAMS = 50
"""Most hyperparameters that are regarded."""
MAX_CHOICES = 32
"""Most values of a hyperparameter that is no number: each is a column of its own."""
_SEED = 0
_TREES = 64
_SAMPLES = 8
_TREES_OF_SAMPLE = 8
_LARGEST = 1e150  # its square is still a number


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialResult:
    """One trial with a result.

    Attributes:
        hparams: Its hyperparameters by dotted name; nested groups have no entry of their own.
        metric: Its best finite metric.
    """

    hparams: Mapping[str, Json]
    metric: float


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The importance of one hyperparameter.

    Attributes:
        name: Its dotted name.
        share: Share of the variance that it explains alone, from 0 to 1.
        error: Standard error of the share.
    """

    name: str
    share: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated importances.

    Attributes:
        importances: The importances, largest first.
        trials: Number of results that were used.
        omitted: Hyperparameters with several values that were not used.
    """

    importances: Sequence[Importance]
    trials: int
    omitted: int


@dataclass(frozen=True)
class _Axis:
    """A hyperparameter in the form for Optuna."""

    distribution: Any
    values: Sequence[float | str]


def trial_results(entries: Iterable[Entry], *, smaller_is_better: bool) -> list[TrialResult]:
    """Reads the trials that have a finite metric from a log, in order of creation."""
    better = min if smaller_is_better else max
    created: dict[str, Mapping[str, Json]] = {}
    best: dict[str, float] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, ValidationCompleted | ValidationReported) and math.isfinite(event.metric):
            known = best.get(event.trial_key, event.metric)
            best[event.trial_key] = better(known, event.metric)
        for operation in entry.operations:
            if isinstance(operation, Create):
                created[operation.trial_key] = operation.hparams
    return [
        TrialResult(hparams=leaves(hparams), metric=best[trial_key])
        for trial_key, hparams in created.items()
        if trial_key in best
    ]


def leaves(tree: Mapping[str, Json], prefix: str = "") -> dict[str, Json]:
    """Returns the values of nested mappings that are no mappings, by dotted name."""
    values: dict[str, Json] = {}
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, Mapping):
            values.update(leaves(value, f"{prefix}{name}."))
        else:
            values[prefix + name] = value
    return values


def estimate(results: Sequence[TrialResult], space: Space) -> Estimate:
    """Estimates importances; equal results have equal estimates.

    Args:
        results: What a search has tried, in order of creation.
        space: Where it searches.
    """
    shown = _spread(results, MAX_TRIALS)
    names, omitted = _names(shown)
    empty = Estimate(importances=(), trials=len(shown), omitted=omitted)
    if len(shown) < MIN_TRIALS or not names or len({trial.metric for trial in shown}) == 1:
        return empty
    axes = {name: _axis(_at(space, name), [trial.hparams[name] for trial in shown]) for name in names}
    trials = _trials(shown, axes)
    shares = _shares(trials, trees=_TREES)
    errors = _errors(trials, names)
    ranked = [Importance(name=name, share=shares.get(name, 0.0), error=errors[name]) for name in names]
    return Estimate(
        importances=sorted(ranked, key=lambda one: (-one.share, one.name)),
        trials=len(shown),
        omitted=omitted,
    )


def _spread(results: Sequence[TrialResult], most: int) -> Sequence[TrialResult]:
    """Selects results at equal distances: the first and the last trials of a search differ."""
    if len(results) <= most:
        return results
    return [results[at * len(results) // most] for at in range(most)]


def _names(results: Sequence[TrialResult]) -> tuple[list[str], int]:
    """Returns the names of the analysed hyperparameters, ascending, and how many others vary."""
    values: dict[str, list[Json]] = {}
    for result in results:
        for name, value in result.hparams.items():
            values.setdefault(name, []).append(value)
    varied = [name for name in sorted(values) if len({_key(value) for value in values[name]}) > 1]
    fitting = [name for name in varied if len(values[name]) == len(results) and _fits(values[name])]
    kept = fitting[:MAX_HPARAMS]
    return kept, len(varied) - len(kept)


def _fits(values: Sequence[Json]) -> bool:
    return all(_is_number(value) for value in values) or len({_key(value) for value in values}) <= MAX_CHOICES


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _key(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _at(space: Space, name: str) -> Any:
    """Returns the part of a space at a dotted name; None if unknown, as in custom searches."""
    for axis_name, axis in space.hyperparameters.items():
        if axis_name == name:
            return axis
        if isinstance(axis, Space) and name.startswith(f"{axis_name}."):
            return _at(axis, name[len(axis_name) + 1 :])
    return None


def _axis(axis: Any, values: Sequence[Json]) -> _Axis:
    """Returns coordinates: numbers of a range, exponents of a log range, other values as choices.

    Numbers that are no range's, of choices or of a client, are numbers too: trees take them in their order.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if not all(_is_number(value) for value in values):
        choices = sorted({_key(value) for value in values})
        return _Axis(CategoricalDistribution(choices), [_key(value) for value in values])
    numbers = [float(value) for value in values]
    bounds: tuple[float, ...] = ()
    match axis:
        case LogRange(minval, maxval, base) if base != 1 and all(value > 0 for value in numbers):
            numbers = [math.log(value) / math.log(base) for value in numbers]
            bounds = (minval, maxval)
        case IntRange(minval, maxval) | DoubleRange(minval, maxval):
            bounds = (float(minval), float(maxval))
    # Clients and continued searches may have gone beyond the space.
    every = (*bounds, *numbers)
    return _Axis(FloatDistribution(min(every), max(every)), numbers)


def _trials(results: Sequence[TrialResult], axes: Mapping[str, _Axis]) -> list[FrozenTrial]:
    from optuna.trial import TrialState, create_trial

    distributions = {name: axis.distribution for name, axis in axes.items()}
    return [
        create_trial(
            state=TrialState.COMPLETE,
            value=min(max(one.metric, -_LARGEST), _LARGEST),
            params={name: axis.values[at] for name, axis in axes.items()},
            distributions=distributions,
        )
        for at, one in enumerate(results)
    ]


def _shares(trials: Sequence[FrozenTrial], *, trees: int) -> dict[str, float]:
    """Returns the share of variance that each hyperparameter explains, from 0 to 1; none if all are equal."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if len({trial.value for trial in trials}) == 1:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study()
        study.add_trials(trials)
        evaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=trees, seed=_SEED)
        shares = evaluator.evaluate(study)
    return {name: min(max(float(share), 0.0), 1.0) for name, share in shares.items()}


def _errors(trials: Sequence[FrozenTrial], names: Sequence[str]) -> dict[str, float]:
    """Returns the standard errors of the shares, by bootstrap."""
    chance = random.Random(_SEED)  # noqa: S311 - no secret is drawn
    drawn = [_shares(chance.choices(trials, k=len(trials)), trees=_TREES_OF_SAMPLE) for _ in range(_SAMPLES)]
    return {name: statistics.stdev(importances.get(name, 0.0) for importances in drawn) for name in names}
