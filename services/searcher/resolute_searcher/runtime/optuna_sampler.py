"""Suggestions of Optuna's samplers for searches, computed in worker processes."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute_searcher.log.events import Suggested
from resolute_searcher.methods.base import SuggestionRequest
from resolute_searcher.methods.model_based import COMPLETE, FAILED, PRUNED
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, Json, LogRange, Space
from resolute_searcher.wire.spec import spec_from

if TYPE_CHECKING:
    import optuna

_LARGEST = 1.7e308
_SEEDS = 2**32
_NUMERIC_ONLY = ("cmaes", "qmc")


def available(sampler: str) -> str:
    """Returns what must be installed to use a sampler; empty if nothing."""
    needed = {"cmaes": ("optuna", "cmaes"), "gp": ("optuna", "scipy", "torch")}.get(sampler, ("optuna",))
    return ", ".join(name for name in needed if importlib.util.find_spec(name) is None)


def suggest(spec: bytes, request: SuggestionRequest) -> Suggested:
    """Answers a request for suggestions; equal requests have equal answers.

    Args:
        spec: The search's spec, serialized.
        request: What it wants to know.
    """
    try:
        return _suggest(spec_from(pb.SearchSpec.FromString(spec)).space, request)
    except Exception as error:  # noqa: BLE001 - whatever a model cannot do, the search goes on
        return Suggested(request.number, None, None, f"{type(error).__name__}: {error}")


def _suggest(space: Space, request: SuggestionRequest) -> Suggested:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    axes = dict(_axes(space, ()))
    distributions = {".".join(path): _distribution(axis) for path, axis in axes.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(
            sampler=_sampler(request, distributions),
            direction="minimize" if request.smaller_is_better else "maximize",
        )
        for name, value in _study_notes(request).items():
            study._storage.set_study_system_attr(study._study_id, name, value)  # noqa: SLF001 - no public way
        study.add_trials(_trials(request, axes, distributions))
        trial = study.ask(distributions)
        notes = {
            "trial": dict(study._storage.get_trial(trial._trial_id).system_attrs),  # noqa: SLF001
            "study": dict(study._storage.get_study_system_attrs(study._study_id)),  # noqa: SLF001
        }
    chosen = {path: _value(axis, trial.params[".".join(path)]) for path, axis in axes.items()}
    kept = {name: value for name, value in notes.items() if value}
    return Suggested(request.number, _nested(space, chosen, ()), kept or None)


def _sampler(request: SuggestionRequest, distributions: Mapping[str, Any]) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    name, settings = request.sampler_config["sampler"], request.sampler_config["settings"]
    # Each suggestion has random numbers of its own, so that it can be made without those before it. The
    # points of a sequence belong together, and so do the steps of an evolution.
    own = (request.seed * 1_000_003 + request.number) % _SEEDS
    independent = samplers.RandomSampler(seed=own)
    sampler: samplers.BaseSampler
    match name:
        case "random":
            return independent
        case "tpe":
            return samplers.TPESampler(**{"constant_liar": True, **settings, "seed": own})
        case "gp":
            sampler = samplers.GPSampler(**{**settings, "seed": own, "independent_sampler": independent})
        case "cmaes":
            sampler = samplers.CmaEsSampler(**{**settings, "seed": own, "independent_sampler": independent})
        case _:
            fixed = {"scramble": True, **settings, "seed": request.seed, "independent_sampler": independent}
            sampler = samplers.QMCSampler(**fixed)
    together = {
        path: distribution
        for path, distribution in sorted(distributions.items())
        if not distribution.single() and (name not in _NUMERIC_ONLY or hasattr(distribution, "low"))
    }
    # Samplers learn the space from the first complete trial; here it is known from the start.
    sampler.infer_relative_search_space = lambda *_: together  # type: ignore[method-assign]
    return sampler


def _study_notes(request: SuggestionRequest) -> dict[str, Any]:
    """Returns the attributes that the latest earlier answer stored in the study."""
    for _, notes in reversed(request.earlier):
        if notes:
            return dict(notes.get("study") or {})
    return {}


def _trials(
    request: SuggestionRequest, axes: Mapping[tuple[str, ...], Any], distributions: Mapping[str, Any]
) -> Sequence[optuna.trial.FrozenTrial]:
    from optuna.trial import TrialState, create_trial

    states = {COMPLETE: TrialState.COMPLETE, PRUNED: TrialState.PRUNED, FAILED: TrialState.FAIL}
    reports: list[dict[int, float]] = [{} for _ in request.earlier]
    ends: dict[int, TrialState] = {}
    for number, length, what in request.facts:
        if length is None:
            ends[number] = states[str(what)]
        else:
            reports[number][length] = float(what)
    made = []
    for number, (hparams, notes) in enumerate(request.earlier):
        values = {step: _finite(metric) for step, metric in reports[number].items() if not math.isnan(metric)}
        state = ends.get(number, TrialState.RUNNING)
        if state is not TrialState.RUNNING and not values:
            state = TrialState.FAIL
        trial = create_trial(
            state=state,
            value=values[max(values)] if state is TrialState.COMPLETE else None,
            params={".".join(path): _parameter(axis, _at(hparams, path)) for path, axis in axes.items()},
            distributions=dict(distributions),
            intermediate_values=values,
            system_attrs=dict((notes or {}).get("trial") or {}),
        )
        made.append(trial)
    return made


def _axes(space: Space, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    axes: list[tuple[tuple[str, ...], Any]] = []
    for name in sorted(space.hyperparameters):
        axis = space.hyperparameters[name]
        if isinstance(axis, Space):
            axes += _axes(axis, (*path, name))
        elif not isinstance(axis, Const):
            axes.append(((*path, name), axis))
    return axes


def _distribution(axis: Any) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match axis:
        case IntRange(minval, maxval):
            return IntDistribution(minval, maxval)
        case DoubleRange(minval, maxval) | LogRange(minval, maxval):
            return FloatDistribution(minval, maxval)
        case Categorical(vals):
            return CategoricalDistribution(tuple(range(len(vals))))
    raise AssertionError(axis)


def _value(axis: Any, parameter: Any) -> Json:
    match axis:
        case LogRange(_, _, base):
            return float(base**parameter)
        case Categorical(vals):
            return vals[parameter]
    return parameter


def _parameter(axis: Any, value: Json) -> Any:
    """Returns Optuna's number for a value; after rounding, the nearest one."""
    match axis:
        case LogRange(minval, maxval, base):
            exponent = math.log(value) / math.log(base) if base != 1 and value > 0 else minval
            return min(max(exponent, minval), maxval)
        case Categorical(vals):
            return vals.index(value)
    return value


def _at(hparams: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    value: Json = hparams
    for name in path:
        value = value[name]
    return value


def _nested(space: Space, chosen: Mapping[tuple[str, ...], Json], path: tuple[str, ...]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name in sorted(space.hyperparameters):
        axis, here = space.hyperparameters[name], (*path, name)
        match axis:
            case Space():
                made[name] = _nested(axis, chosen, here)
            case Const(value):
                made[name] = value
            case _:
                made[name] = chosen[here]
    return made


def _finite(metric: float) -> float:
    return min(max(metric, -_LARGEST), _LARGEST)
