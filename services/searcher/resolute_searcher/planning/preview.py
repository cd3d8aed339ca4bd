"""A preview of a spec: the trials and lengths of each bracket, without creating anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from resolute.errors import FailedPreconditionError
from resolute_searcher.methods.registry import kind_of
from resolute_searcher.spec.grid import Grid
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    CustomSpec,
    GridSpec,
    ModelSpec,
    PluginSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)


@dataclass(frozen=True, slots=True)
class BracketPreview:
    """The trials that one bracket would run.

    Attributes:
        trials: Number of trials.
        concurrent_trials: Most trials alive at once; 0 for no limit.
        endings: How many trials end at which absolute length, shortest first; length 0 stands for trials that
        know
            themselves when they are done.
    """

    trials: int
    concurrent_trials: int
    endings: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """The trials that a search would run.

    Attributes:
        brackets: The brackets, largest first.
        total_units: Sum of the training units of all trials.
    """

    brackets: tuple[BracketPreview, ...]
    total_units: int


def preview(spec: SearchSpec) -> Preview:
    """Returns the trials of a checked spec if each rung promotes exactly its share.

    Args:
        spec: What to search.

    Raises:
        FailedPreconditionError: Only its method knows what it would run.
        InvalidArgumentError: The method, of another distribution, cannot be made for it.
    """
    match spec.method:
        case SingleSpec(max_length):
            brackets = [_uniform_bracket(1, 1, max_length)]
        case RandomSpec(max_length, max_trials, concurrent):
            brackets = [_uniform_bracket(max_trials, concurrent, max_length)]
        case GridSpec(max_length, concurrent):
            brackets = [_uniform_bracket(Grid(spec.space).size, concurrent, max_length)]
        case AsyncHalvingSpec() as method:
            brackets = [_halving(method.bracket(smaller_is_better=True), method)]
        case AdaptiveAshaSpec() as method:
            brackets = [_halving(bracket, method) for bracket in method.brackets(smaller_is_better=True)]
        case ModelSpec() as method:
            brackets = [_halving(method.bracket(smaller_is_better=True), method)]
        case CustomSpec() | PluginSpec():
            if isinstance(spec.method, PluginSpec):
                kind_of(spec).build(spec)
            raise FailedPreconditionError("this search cannot be previewed: only its method knows its trials")
    total = sum(length * trials for bracket in brackets for length, trials in bracket.endings)
    return Preview(brackets=tuple(brackets), total_units=total)


def _uniform_bracket(trials: int, concurrent: int, max_length: int | None) -> BracketPreview:
    return BracketPreview(trials=trials, concurrent_trials=concurrent, endings=((max_length or 0, trials),))


def _halving(bracket: Halving, method: AsyncHalvingSpec | AdaptiveAshaSpec | ModelSpec) -> BracketPreview:
    # The first trial on a rung continues when trials are judged as they arrive; it is not promoted alone.
    at_least = 1 if isinstance(method, ModelSpec) or method.stop_once or method.time_driven else 0
    endings: Counter[int] = Counter()
    here = bracket.max_trials
    for rung in range(bracket.top):
        rising = max(int(here / bracket.divisor), min(at_least, here))
        endings[bracket.length(rung)] += here - rising
        here = rising
    endings[bracket.length(bracket.top)] += here
    return BracketPreview(
        trials=bracket.max_trials,
        concurrent_trials=bracket.initial_trials,
        endings=tuple(sorted((length, trials) for length, trials in endings.items() if trials)),
    )
