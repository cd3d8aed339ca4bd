"""The registry of search methods and their versions by kind of spec."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import entry_points

from resolute.errors import InvalidArgumentError, NotFoundError, ResoluteError
from resolute_searcher.methods.base import SearchMethod
from resolute_searcher.methods.custom import CustomSearch
from resolute_searcher.methods.full_length import FullLengthSearch, Refused
from resolute_searcher.methods.model_based import ModelSearch
from resolute_searcher.methods.multi_bracket import MultiBracketSearch
from resolute_searcher.methods.successive_halving.asha_promotion import AsyncHalvingSearch
from resolute_searcher.methods.successive_halving.asha_stopping import StoppingHalvingSearch
from resolute_searcher.methods.successive_halving.asha_time_driven import TimedHalvingSearch
from resolute_searcher.spec.adaptive import split_trials
from resolute_searcher.spec.grid import Grid
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    CustomSpec,
    GridSpec,
    MethodSpec,
    ModelSpec,
    PluginSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)

_LONGEST_TRACEBACK = 2000
ENTRY_POINTS = "resolute.search_methods"
"""Group of the entry points by which other distributions bring search methods."""


@dataclass(frozen=True, slots=True)
class MethodKind:
    """A search method that can be selected.

    Attributes:
        name: Name of the method in configs.
        version: Version of the method, recorded in logs. It increases whenever equal events could give other
            operations than before.
        build: Creates the method for a checked spec.
        custom: Whether a client decides by posting operations.
        extends: Fields that extensions can raise: `max_trials`, `max_length`.
    """

    name: str
    version: int
    build: Callable[[SearchSpec], SearchMethod]
    custom: bool = False
    extends: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """Name and version, as ``name/version``."""
        return f"{self.name}/{self.version}"


def kind_of(spec: SearchSpec) -> MethodKind:
    """Returns the method that serves a spec.

    Raises:
        NotFoundError: It is of another distribution, which is not installed here.
        InvalidArgumentError: It is of another distribution, whose module fails.
    """
    if isinstance(spec.method, PluginSpec):
        return plugin_kind(spec.method.name)
    return _KINDS[type(spec.method)]


@lru_cache(maxsize=64)
def plugin_kind(name: str) -> MethodKind:
    """Finds a method by its entry point, which leads to a `MethodKind`.

    Raises:
        NotFoundError: There is none of this name.
        InvalidArgumentError: Its module fails, or it is no `MethodKind`.
    """
    for point in entry_points(group=ENTRY_POINTS, name=name):
        try:
            kind = point.load()
        except Exception as failure:
            raise InvalidArgumentError(
                f"{point.value}, the search method {name!r}, cannot be imported: {_traceback(failure)}"
            ) from failure
        if not isinstance(kind, MethodKind):
            raise InvalidArgumentError(f"{point.value}, the search method {name!r}, is no MethodKind")
        return replace(kind, build=partial(_build, kind))
    known = sorted({kind.name for kind in _KINDS.values()} | entry_points(group=ENTRY_POINTS).names)
    raise NotFoundError(
        f"no search method {name!r} is installed here; there are {', '.join(known)}. Install the "
        f"distribution that brings it (entry point group {ENTRY_POINTS})",
        resource=f"search method {name}",
    )


def _build(kind: MethodKind, spec: SearchSpec) -> SearchMethod:
    """Creates a method of another distribution; its errors are reported to the submitter."""
    try:
        return kind.build(spec)
    except ResoluteError:
        raise
    except Exception as failure:
        raise InvalidArgumentError(
            f"the search method {kind.name!r} cannot be made for this config: {_traceback(failure)}"
        ) from failure


def _traceback(failure: Exception) -> str:
    """Returns an error with the end of its traceback, without the frame of this module."""
    within = failure.__traceback__.tb_next if failure.__traceback__ else None
    return "".join(traceback.format_exception(type(failure), failure, within))[-_LONGEST_TRACEBACK:].strip()


def _single(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, SingleSpec)
    return FullLengthSearch(
        max_length=spec.method.max_length, max_trials=1, max_concurrent_trials=1, refused=Refused.DROPPED
    )


def _random(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, RandomSpec)
    return FullLengthSearch(
        max_length=spec.method.max_length,
        max_trials=spec.method.max_trials,
        max_concurrent_trials=spec.method.max_concurrent_trials,
    )


def _grid(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, GridSpec)
    grid = Grid(spec.space)
    return FullLengthSearch(
        max_length=spec.method.max_length,
        max_trials=grid.size,
        max_concurrent_trials=spec.method.max_concurrent_trials,
        # The last point first.
        hparams=lambda created: grid.point(grid.size - 1 - created),
        refused=Refused.COMPLETE,
    )


def _async_halving(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, AsyncHalvingSpec)
    return _bracket_kind(spec.method)(spec.method.bracket(smaller_is_better=spec.smaller_is_better))


def _adaptive_asha(spec: SearchSpec) -> SearchMethod:
    assert isinstance(spec.method, AdaptiveAshaSpec)
    build = _bracket_kind(spec.method)
    brackets = spec.method.brackets(smaller_is_better=spec.smaller_is_better)

    def split(max_trials: int) -> list[int]:
        rungs = [bracket.num_rungs for bracket in brackets]
        return split_trials(max_trials, divisor=brackets[0].divisor, rungs=rungs)

    return MultiBracketSearch([build(bracket) for bracket in brackets], split=split)


def _custom(_: SearchSpec) -> SearchMethod:
    return CustomSearch()


def _model(spec: SearchSpec) -> SearchMethod:
    method = spec.method
    assert isinstance(method, ModelSpec)
    return ModelSearch(
        method.bracket(smaller_is_better=spec.smaller_is_better),
        sampler_config={"sampler": method.sampler, "settings": dict(method.settings)},
        seed=spec.seed,
    )


def _bracket_kind(method: AsyncHalvingSpec | AdaptiveAshaSpec) -> Callable[[Halving], SearchMethod]:
    if method.time_driven:
        return TimedHalvingSearch
    return StoppingHalvingSearch if method.stop_once else AsyncHalvingSearch


_BOTH = frozenset({"max_trials", "max_length"})
_LENGTH = frozenset({"max_length"})
_KINDS: dict[type[MethodSpec], MethodKind] = {
    SingleSpec: MethodKind("single", 1, _single, extends=_LENGTH),
    RandomSpec: MethodKind("random", 1, _random, extends=_BOTH),
    GridSpec: MethodKind("grid", 1, _grid, extends=_LENGTH),
    AsyncHalvingSpec: MethodKind("async_halving", 1, _async_halving, extends=_BOTH),
    AdaptiveAshaSpec: MethodKind("adaptive_asha", 1, _adaptive_asha, extends=_BOTH),
    CustomSpec: MethodKind("custom", 1, _custom, custom=True),
    ModelSpec: MethodKind("optuna", 1, _model, extends=_BOTH),
}
