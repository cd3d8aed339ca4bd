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
    """What every search has.

    Attributes:
        name: The search method.
        metric: The validation metric that decides.
        smaller_is_better: Whether a smaller value of the metric is better.
        source_trial_id: Start every trial from the latest checkpoint of this trial.
        source_checkpoint_uuid: Start every trial from this checkpoint.
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
    """One trial. Without ``max_length``, or with 0, it ends when its script does."""

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
    """What searches by successive halving share.

    The longest trial is as long as ``max_length`` says; or the trials report ``time_metric`` with each
    validation and the search stops them as that reaches parts of ``max_time``.

    Attributes:
        max_trials: The number of trials.
        max_time: Value of ``time_metric`` at which the longest trial ends.
        time_metric: Name of the metric that measures how long a trial has trained, such as ``batches``.
        divisor: Of the trials of a rung, one in ``divisor`` continues to the next.
        max_concurrent_trials: How many trials run at a time; 0 lets the method choose.
        stop_once: Decide at each rung whether the trial stops, never resume one that waited.
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
        mode: How soon trials are stopped: ``aggressive``, ``standard`` or ``conservative``.
        max_rungs: Most rungs of a bracket.
        bracket_rungs: Rungs of each bracket; empty lets ``mode`` choose.
    """

    name: Literal["adaptive_asha"] = "adaptive_asha"
    max_length: RungLength | None = None
    mode: Literal["aggressive", "standard", "conservative"] = "standard"
    max_rungs: Positive = 5
    bracket_rungs: tuple[Positive, ...] = ()


class CustomSearcher(CommonSearcher):
    """A search driven from outside; fields that are not known here are passed on to it."""

    model_config = ConfigDict(extra="allow")

    name: Literal["custom"] = "custom"
    unit: Unit | None = None


class OptunaSearcher(CommonSearcher):
    """Hyperparameters that a model of the earlier results chooses, with Optuna's samplers.

    Attributes:
        max_trials: The number of trials.
        max_length: How long the longest trial trains.
        sampler: ``tpe``, ``gp``, ``cmaes``, ``qmc`` or ``random``.
        sampler_settings: Arguments of Optuna's sampler of that name.
        max_concurrent_trials: How many trials run at a time (0: all).
        num_rungs: Rungs at which a trial stops unless it is among the best; 1 for none.
        divisor: Of the trials of a rung, one in ``divisor`` continues to the next.
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
    """A search by a method that another distribution brings to the searcher service.

    Attributes:
        method: Name of its entry point in the group ``resolute.search_methods``.
        settings: What only the method understands.
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
