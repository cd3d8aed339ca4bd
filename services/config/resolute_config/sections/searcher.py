"""The ``searcher`` section: which trials to run, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import (
    Count,
    Flag,
    Json,
    Name,
    Number,
    Positive,
    Section,
    Text,
)
from resolute.contracts.documents.variants import choose
from resolute_config.removed_searches import instead
from resolute_config.sections.length import RungLength, SearchLength, Unit, UnitLength

_IN_STEPS = "removed; give the length of a trial as max_length, such as {batches: 1000}"


class CommonSearcher(Section):
    """The fields of every search.

    Attributes:
        name: The search method.
        metric: The validation metric by which the search decides.
        smaller_is_better: Whether a smaller value of the metric is better.
        source_trial_id: Trial from whose latest checkpoint every trial starts.
        source_checkpoint_uuid: Checkpoint from which every trial starts.
    """

    advice: ClassVar[Mapping[str, str]] = {
        "max_steps": _IN_STEPS,
        "target_trial_steps": _IN_STEPS,
        "step_budget": _IN_STEPS,
    }

    name: Text
    metric: Name = Field(description="the name of the validation metric that the search compares")
    smaller_is_better: Flag = True
    source_trial_id: Positive | None = None
    source_checkpoint_uuid: Name | None = None

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """Only one source to start from."""
        if "source_trial_id" in given and "source_checkpoint_uuid" in given:
            problem = "source_trial_id and source_checkpoint_uuid are both given"
            yield "source_checkpoint_uuid", reject("at most one of them", problem=problem)


class SingleSearcher(CommonSearcher):
    """One trial. Without ``max_length``, or with 0, it ends when its script ends."""

    name: Literal["single"] = "single"
    max_length: SearchLength | None = None


class RandomSearcher(CommonSearcher):
    """``max_trials`` trials with random hyperparameters, ``max_concurrent_trials`` at a time (0: all)."""

    name: Literal["random"] = "random"
    max_trials: Positive = Field(description="the number of trials, 1 or more")
    max_length: SearchLength | None = None
    max_concurrent_trials: Count = 16


class GridSearcher(CommonSearcher):
    """A trial for each point of the grid, ``max_concurrent_trials`` at a time (0: all)."""

    name: Literal["grid"] = "grid"
    max_length: SearchLength | None = None
    max_concurrent_trials: Count = 16


class HalvingSearcher(CommonSearcher):
    """The fields that searches by successive halving share.

    The length of the longest trial is ``max_length``. Alternatively the trials report ``time_metric`` with
    each validation, and the search stops them when it reaches fractions of ``max_time``.

    Attributes:
        max_trials: The number of trials.
        max_time: Value of ``time_metric`` at which the longest trial ends.
        time_metric: Name of the metric that measures how long a trial has trained, such as ``batches``.
        divisor: Reduction factor: one in ``divisor`` trials of a rung continues to the next.
        max_concurrent_trials: Number of trials that run at one time; 0 lets the method choose.
        stop_once: Whether each rung decides at once whether a trial stops, so that no trial waits and
            resumes.
    """

    max_trials: Positive = Field(description="the number of trials, 1 or more")
    max_time: Positive | None = None
    time_metric: Name | None = None
    divisor: Annotated[Number, Field(gt=1)] = 4
    max_concurrent_trials: Count = 16
    stop_once: Flag = False

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """Exactly one measure of how long a trial is."""
        yield from super().relations(given)
        timed = {"max_time", "time_metric"} & given.keys()
        if "max_length" in given and timed:
            problem = f"{' and '.join(sorted(timed))} and max_length are both given"
            yield "max_length", reject("either max_length, or max_time with time_metric", problem=problem)
        elif "max_length" not in given and not timed:
            expected = (
                "the length of the longest trial, such as {batches: 1000}, or max_time with time_metric"
            )
            yield "max_length", reject(expected, problem="missing", incomplete=True)
        elif len(timed) == 1:
            absent = "time_metric" if "max_time" in timed else "max_time"
            other = "max_time" if "max_time" in timed else "time_metric"
            expected = f"a value, because {other} is given"
            yield absent, reject(expected, problem="missing", incomplete=True)


class AsyncHalvingSearcher(HalvingSearcher):
    """One bracket of asynchronous successive halving with ``num_rungs`` rungs."""

    name: Literal["async_halving"] = "async_halving"
    num_rungs: Positive = Field(description="the number of rungs, 1 or more")
    max_length: UnitLength | None = None


class AdaptiveAshaSearcher(HalvingSearcher):
    """Several brackets of asynchronous successive halving, chosen by ``mode``.

    Attributes:
        mode: How early trials are stopped: ``aggressive``, ``standard`` or ``conservative``.
        max_rungs: Most rungs of a bracket.
        bracket_rungs: Rungs of each bracket; empty lets ``mode`` choose.
    """

    name: Literal["adaptive_asha"] = "adaptive_asha"
    max_length: RungLength | None = None
    mode: Literal["aggressive", "standard", "conservative"] = "standard"
    max_rungs: Positive = 5
    bracket_rungs: tuple[Positive, ...] = ()


class CustomSearcher(CommonSearcher):
    """A search that a client drives. Unknown fields are passed on to it."""

    model_config = ConfigDict(extra="allow")

    name: Literal["custom"] = "custom"
    unit: Unit | None = None


class OptunaSearcher(CommonSearcher):
    """Hyperparameters that a model of the earlier results chooses, with Optuna's samplers.

    Attributes:
        max_trials: The number of trials.
        max_length: Length of the longest trial.
        sampler: Optuna's sampler: ``tpe``, ``gp``, ``cmaes``, ``qmc`` or ``random``.
        sampler_settings: Arguments of Optuna's sampler of that name.
        max_concurrent_trials: Number of trials that run at one time (0: all).
        num_rungs: Number of rungs; at each one a trial stops unless it is among the best. 1 for no early
            stopping.
        divisor: Reduction factor: one in ``divisor`` trials of a rung continues to the next.
    """

    name: Literal["optuna"] = "optuna"
    max_trials: Positive = Field(description="the number of trials, 1 or more")
    max_length: RungLength = Field(description="the length of the longest trial, such as {batches: 1000}")
    sampler: Literal["tpe", "gp", "cmaes", "qmc", "random"] = "tpe"
    sampler_settings: dict[str, Json] = Field(default_factory=dict)
    max_concurrent_trials: Count = 16
    num_rungs: Positive = 1
    divisor: Annotated[Number, Field(gt=1)] = 4


class PluginSearcher(CommonSearcher):
    """A search by a method that another distribution adds to the searcher service.

    Attributes:
        method: Name of its entry point in the group ``resolute.search_methods``.
        settings: Settings that only the method interprets.
    """

    name: Literal["plugin"] = "plugin"
    method: Name = Field(description="the name of the method's entry point")
    settings: dict[str, Json] = Field(default_factory=dict)


SEARCHERS: Mapping[str, type[Section]] = {
    "single": SingleSearcher,
    "random": RandomSearcher,
    "grid": GridSearcher,
    "adaptive_asha": AdaptiveAshaSearcher,
    "async_halving": AsyncHalvingSearcher,
    "optuna": OptunaSearcher,
    "custom": CustomSearcher,
    "plugin": PluginSearcher,
}
REMOVED = dict.fromkeys(("adaptive", "sync_halving", "pbt"), instead)

Searcher: TypeAlias = Annotated[
    SingleSearcher
    | RandomSearcher
    | GridSearcher
    | AdaptiveAshaSearcher
    | AsyncHalvingSearcher
    | OptunaSearcher
    | CustomSearcher
    | PluginSearcher,
    BeforeValidator(choose("name", common=CommonSearcher, variants=SEARCHERS, removed=REMOVED)),
]
"""One of the searches, distinguished by ``name``."""
