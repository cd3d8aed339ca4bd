"""Which implementation, in which version, serves which kind of spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from resolute_searcher.methods.asha import AsyncHalvingSearch
from resolute_searcher.methods.asha_stopping import StoppingHalvingSearch
from resolute_searcher.methods.asha_timed import TimedHalvingSearch
from resolute_searcher.methods.base import SearchMethod
from resolute_searcher.methods.grid import GridSearch
from resolute_searcher.methods.halving import Halving
from resolute_searcher.methods.random_search import RandomSearch
from resolute_searcher.methods.tournament import TournamentSearch
from resolute_searcher.specs import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)


@dataclass(frozen=True, slots=True)
class MethodKind:
    """A search method that searches can be created with.

    Attributes:
        name: What configs call it.
        version: Grows whenever equal events could give other operations than before; logs carry it.
        build: Makes the method for a spec that was checked.
    """

    name: str
    version: int
    build: Callable[[SearchSpec], SearchMethod]

    @property
    def label(self) -> str:
        """Name and version in one word."""
        return f"{self.name}/{self.version}"


def kind_of(spec: SearchSpec) -> MethodKind:
    """Gives the method that serves a spec."""
    return _KINDS[type(spec.method)]


def _single(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, SingleSpec)
    return RandomSearch(
        max_length=spec.method.max_length, max_trials=1, max_concurrent_trials=1, replace_invalid=False
    )


def _random(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, RandomSpec)
    return RandomSearch(
        max_length=spec.method.max_length,
        max_trials=spec.method.max_trials,
        max_concurrent_trials=spec.method.max_concurrent_trials,
    )


def _grid(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, GridSpec)
    return GridSearch(
        spec.space,
        max_length=spec.method.max_length,
        max_concurrent_trials=spec.method.max_concurrent_trials,
    )


def _async_halving(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, AsyncHalvingSpec)
    return _bracket_kind(spec.method)(spec.method.bracket(smaller_is_better=spec.smaller_is_better))


def _adaptive_asha(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, AdaptiveAshaSpec)
    build = _bracket_kind(spec.method)
    brackets = spec.method.brackets(smaller_is_better=spec.smaller_is_better)
    return TournamentSearch([build(bracket) for bracket in brackets])


def _bracket_kind(method: AsyncHalvingSpec | AdaptiveAshaSpec) -> Callable[[Halving], SearchMethod]:
    if method.time_driven:
        return TimedHalvingSearch
    return StoppingHalvingSearch if method.stop_once else AsyncHalvingSearch


_KINDS: dict[type[MethodSpec], MethodKind] = {
    SingleSpec: MethodKind("single", 1, _single),
    RandomSpec: MethodKind("random", 1, _random),
    GridSpec: MethodKind("grid", 1, _grid),
    AsyncHalvingSpec: MethodKind("async_halving", 1, _async_halving),
    AdaptiveAshaSpec: MethodKind("adaptive_asha", 1, _adaptive_asha),
}
