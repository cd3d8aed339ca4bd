"""The spec of a search. It is checked before the search is created, and immutable afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from resolute_searcher.spec.adaptive import AdaptiveMode, AdaptivePlan
from resolute_searcher.spec.grid import grid_size, missing_counts
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.space import Json, Space
from resolute_searcher.spec.violations import Violations

MAX_TRIALS = 1_000_000
"""Most trials of a search."""
MAX_MODEL_TRIALS = 10_000
"""Most trials of a search by a model."""
MAX_LENGTH = 2**42
"""Most training units of a trial: those of all trials together are still a number of 64 bits."""
MAX_INITIAL_TRIALS = 20_000
"""Most trials that a search begins with."""
_MAX_RUNGS = 64
_MAX_BRACKETS = 64
_MAX_DIVISOR = 10_000  # to the power of the most rungs it is still a number


@dataclass(frozen=True, slots=True)
class SingleSpec:
    """One trial.

    Attributes:
        max_length: Length to train to; None if trials end by themselves.
    """

    max_length: int | None

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)


@dataclass(frozen=True, slots=True)
class RandomSpec:
    """Independent samples.

    Attributes:
        max_length: Length to train to; None if trials end by themselves.
        max_trials: Number of trials.
        max_concurrent_trials: Most trials alive at once; 0 for no limit.
    """

    max_length: int | None
    max_trials: int
    max_concurrent_trials: int = 16

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)
        _check_trials(self.max_trials, self.max_concurrent_trials, violations)


@dataclass(frozen=True, slots=True)
class GridSpec:
    """Every point of a grid.

    Attributes:
        max_length: Length to train to; None if trials end by themselves.
        max_concurrent_trials: Most trials alive at once; 0 for no limit.
    """

    max_length: int | None
    max_concurrent_trials: int = 16

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)
        without = list(missing_counts(spec.space, "hyperparameters"))
        for path in without:
            violations.add(path, "must be given in a grid search: how many points the range has")
        if without or violations.found:
            return
        points = grid_size(spec.space)
        _check_trials(
            points, self.max_concurrent_trials, violations, name="hyperparameters (number of grid points)"
        )


@dataclass(frozen=True, slots=True)
class AsyncHalvingSpec:
    """One bracket of asynchronous successive halving.

    Attributes:
        num_rungs: Number of rungs.
        max_length: Length, or value of the time metric, at the top rung.
        max_trials: Number of trials.
        divisor: Reduction factor: one in ``divisor`` trials is promoted; above 1.
        max_concurrent_trials: Most trials alive at once; 0 lets the method choose.
        stop_once: Whether trials stop for good instead of being promoted later.
        time_driven: Whether validation reports decide, by the time metric.
    """

    num_rungs: int
    max_length: int
    max_trials: int
    divisor: float = 4.0
    max_concurrent_trials: int = 16
    stop_once: bool = False
    time_driven: bool = False

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)
        _check_trials(self.max_trials, self.max_concurrent_trials, violations)
        _check_divisor(self.divisor, violations)
        _check_rungs(self.num_rungs, "num_rungs", violations)
        _check_time(spec, self.time_driven, violations)

    def bracket(self, *, smaller_is_better: bool) -> Halving:
        """Returns the bracket."""
        return Halving(
            num_rungs=self.num_rungs,
            max_length=self.max_length,
            max_trials=self.max_trials,
            divisor=self.divisor,
            max_concurrent_trials=self.max_concurrent_trials,
            smaller_is_better=smaller_is_better,
        )


@dataclass(frozen=True, slots=True)
class AdaptiveAshaSpec:
    """Several brackets of asynchronous successive halving.

    Attributes:
        max_length: Length, or value of the time metric, at the top rungs.
        max_trials: Number of trials.
        divisor: Reduction factor: one in ``divisor`` trials is promoted; above 1.
        max_rungs: Most rungs of a bracket.
        max_concurrent_trials: Most trials alive at once; 0 lets the method choose.
        mode: Degree to which trials are stopped early, which determines the brackets.
        bracket_rungs: Rungs of each bracket; empty derives them from the mode.
        stop_once: Whether trials stop for good instead of being promoted later.
        time_driven: Whether validation reports decide, by the time metric.
    """

    max_length: int
    max_trials: int
    divisor: float = 4.0
    max_rungs: int = 5
    max_concurrent_trials: int = 16
    mode: AdaptiveMode = AdaptiveMode.STANDARD
    bracket_rungs: tuple[int, ...] = ()
    stop_once: bool = False
    time_driven: bool = False

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)
        _check_trials(self.max_trials, self.max_concurrent_trials, violations)
        _check_divisor(self.divisor, violations)
        _check_rungs(self.max_rungs, "max_rungs", violations)
        for number, rungs in enumerate(self.bracket_rungs):
            _check_rungs(rungs, f"bracket_rungs[{number}]", violations)
        many = len(self.bracket_rungs)
        violations.require(
            many <= _MAX_BRACKETS, "bracket_rungs", f"can name {_MAX_BRACKETS} brackets, not {many}"
        )
        _check_time(spec, self.time_driven, violations)

    def brackets(self, *, smaller_is_better: bool) -> list[Halving]:
        """Returns the brackets, the one with the most rungs first."""
        plan = AdaptivePlan(
            max_length=self.max_length,
            max_trials=self.max_trials,
            divisor=self.divisor,
            max_rungs=self.max_rungs,
            max_concurrent_trials=self.max_concurrent_trials,
            mode=self.mode,
            bracket_rungs=self.bracket_rungs,
            smaller_is_better=smaller_is_better,
        )
        return plan.brackets()


@dataclass(frozen=True, slots=True)
class CustomSpec:
    """A search that a client drives."""

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Does nothing: the client defines the search."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Samples that a model of the earlier results chooses, with Optuna's samplers.

    Attributes:
        max_length: Length to train to.
        max_trials: Number of trials.
        sampler: Name of the sampler.
        settings: The sampler's own settings.
        max_concurrent_trials: Most trials alive at once; 0 for no limit.
        num_rungs: Number of rungs; at each one, trials that are not among the best are stopped. 1 for no
            early stopping.
        divisor: Reduction factor: one in ``divisor`` trials continues; above 1.
    """

    max_length: int
    max_trials: int
    sampler: str = "tpe"
    settings: Mapping[str, Json] = field(default_factory=dict)
    max_concurrent_trials: int = 16
    num_rungs: int = 1
    divisor: float = 4.0

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_length(self.max_length, violations)
        _check_trials(self.max_trials, self.max_concurrent_trials, violations)
        _check_divisor(self.divisor, violations)
        _check_rungs(self.num_rungs, "num_rungs", violations)
        _check_time(spec, False, violations)
        many = self.max_trials <= MAX_MODEL_TRIALS
        violations.require(
            many,
            "searcher.max_trials",
            f"must be at most {MAX_MODEL_TRIALS} in a search by a model, which weighs all earlier trials "
            f"for each new one; not {self.max_trials}",
        )

    def bracket(self, *, smaller_is_better: bool) -> Halving:
        """Returns the bracket."""
        return Halving(
            num_rungs=self.num_rungs,
            max_length=self.max_length,
            max_trials=self.max_trials,
            divisor=self.divisor,
            max_concurrent_trials=self.max_concurrent_trials or self.max_trials,
            smaller_is_better=smaller_is_better,
        )


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A search by a method that another distribution adds.

    Attributes:
        name: Name of its entry point.
        settings: Settings that only the method interprets.
    """

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict)

    def check(self, spec: SearchSpec, violations: Violations) -> None:
        """Does nothing: the method checks its settings."""


MethodSpec: TypeAlias = (
    SingleSpec
    | RandomSpec
    | GridSpec
    | AsyncHalvingSpec
    | AdaptiveAshaSpec
    | CustomSpec
    | ModelSpec
    | PluginSpec
)


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """The complete spec of a search.

    Attributes:
        method: Settings of the search method.
        metric: Name of the validation metric by which the search decides.
        smaller_is_better: Whether smaller values of it are better.
        seed: Seed of the random numbers, from 0 to 2**32 - 1.
        space: The hyperparameter space.
        time_metric: Name of the metric that measures how long a trial has trained; None if trials follow
            operations.
        source_checkpoint_id: Checkpoint from which every trial starts; empty for none.
    """

    method: MethodSpec
    metric: str = "loss"
    smaller_is_better: bool = True
    seed: int = 0
    space: Space = field(default_factory=Space)
    time_metric: str | None = None
    source_checkpoint_id: str = ""

    def check(self) -> None:
        """Checks the whole spec.

        Raises:
            InvalidArgumentError: It lists all that is wrong.
        """
        violations = Violations()
        violations.require(
            bool(self.metric), "searcher.metric", "must name the validation metric that decides"
        )
        violations.require(
            self.time_metric is None or bool(self.time_metric), "searcher.time_metric", "must not be empty"
        )
        self.space.check("hyperparameters", violations)
        self.method.check(self, violations)
        violations.raise_if_any("search spec")


def _check_length(max_length: int | None, violations: Violations) -> None:
    if max_length is not None:
        fine = 1 <= max_length <= MAX_LENGTH
        violations.require(fine, "searcher.max_length", f"must be from 1 to {MAX_LENGTH}, not {max_length}")


def _check_trials(
    max_trials: int, concurrent: int, violations: Violations, *, name: str = "searcher.max_trials"
) -> None:
    violations.require(
        1 <= max_trials <= MAX_TRIALS, name, f"must be from 1 to {MAX_TRIALS}, not {max_trials}"
    )
    violations.require(
        concurrent >= 0, "searcher.max_concurrent_trials", f"must not be below 0 as {concurrent} is"
    )
    initial_trials = min(concurrent or max_trials, max_trials)
    violations.require(
        initial_trials <= MAX_INITIAL_TRIALS,
        "searcher.max_concurrent_trials",
        f"must be from 1 to {MAX_INITIAL_TRIALS} when there are {max_trials} trials, not {concurrent}",
    )


def _check_divisor(divisor: float, violations: Violations) -> None:
    fine = 1 < divisor <= _MAX_DIVISOR
    violations.require(fine, "searcher.divisor", f"must be above 1 and at most {_MAX_DIVISOR}, not {divisor}")


def _check_rungs(rungs: int, name: str, violations: Violations) -> None:
    fine = 1 <= rungs <= _MAX_RUNGS
    violations.require(fine, f"searcher.{name}", f"must be from 1 to {_MAX_RUNGS}, not {rungs}")


def _check_time(spec: SearchSpec, time_driven: bool, violations: Violations) -> None:
    if time_driven != (spec.time_metric is not None):
        wanted = "must be given" if time_driven else "must be absent unless validation reports decide"
        violations.add("searcher.time_metric", wanted)
