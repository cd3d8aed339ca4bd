"""Parses the spec of a search from its message, which is also the stored form."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.api.common.v1 import value_pb2
from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute.contracts.messages import from_message
from resolute.contracts.values import from_value
from resolute_searcher.spec.adaptive import AdaptiveMode
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.spec.space import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    Json,
    LogRange,
    Space,
)
from resolute_searcher.wire.external_methods import external_method_from, invalid_spec

_MODES: Mapping[int, AdaptiveMode] = {
    pb.ADAPTIVE_MODE_AGGRESSIVE: AdaptiveMode.AGGRESSIVE,
    pb.ADAPTIVE_MODE_STANDARD: AdaptiveMode.STANDARD,
    pb.ADAPTIVE_MODE_CONSERVATIVE: AdaptiveMode.CONSERVATIVE,
}
# Messages nest at most 100 deep; a level of hyperparameters takes three of them, and a log entry has some
# around it.
_MAX_DEPTH = 24


def spec_from(message: pb.SearchSpec) -> SearchSpec:
    """Converts the message of a spec, and checks the spec.

    Raises:
        InvalidArgumentError: It lists all that is wrong.
        UnimplementedError: The method is not one of this version's.
    """
    spec = from_message(
        SearchSpec,
        message,
        method=_method_from(message),
        space=_space_from(message.space, path="hyperparameters", depth=0),
    )
    spec.check()
    return spec


def _method_from(message: pb.SearchSpec) -> MethodSpec:
    match message.WhichOneof("method"):
        case "single":
            return from_message(SingleSpec, message.single)
        case "random":
            return from_message(RandomSpec, message.random)
        case "grid":
            return from_message(GridSpec, message.grid)
        case "async_halving":
            return from_message(AsyncHalvingSpec, message.async_halving)
        case "adaptive_asha":
            return _adaptive_asha_from(message.adaptive_asha)
        case "external":
            return external_method_from(message.external)
    raise invalid_spec("searcher.name", "must name a search method")


def _adaptive_asha_from(method: pb.AdaptiveAshaMethod) -> AdaptiveAshaSpec:
    mode = _MODES.get(method.mode)
    if mode is None:
        raise invalid_spec("searcher.mode", "must be aggressive, standard or conservative")
    return from_message(AdaptiveAshaSpec, method, mode=mode)


def _space_from(message: pb.Space, *, path: str, depth: int) -> Space:
    if depth > _MAX_DEPTH:
        raise invalid_spec(path, f"nests deeper than {_MAX_DEPTH} levels")
    return Space(
        {
            name: _hyperparameter_from(axis, path=f"{path}.{name}", depth=depth)
            for name, axis in message.hyperparameters.items()
        }
    )


def _hyperparameter_from(message: pb.Hyperparameter, *, path: str, depth: int) -> Hyperparameter:
    match message.WhichOneof("kind"):
        case "const_value":
            return Const(_plain(message.const_value, path=path, depth=depth))
        case "int_range":
            return from_message(IntRange, message.int_range)
        case "double_range":
            return from_message(DoubleRange, message.double_range)
        case "log_range":
            return from_message(LogRange, message.log_range)
        case "categorical":
            vals = message.categorical.vals
            return Categorical(tuple(_plain(value, path=path, depth=depth) for value in vals))
        case "nested":
            return _space_from(message.nested, path=path, depth=depth + 1)
    raise invalid_spec(path, "must be of some kind")


def _plain(message: value_pb2.Value, *, path: str, depth: int) -> Json:
    value = from_value(message)
    if depth + _depth(value) > _MAX_DEPTH:
        raise invalid_spec(path, f"nests deeper than {_MAX_DEPTH} levels")
    return value


def _depth(value: Json) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
