"""What is asked of a search, read from the messages that are stored."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.api.common.v1 import value_pb2
from resolute.contracts.values import from_value
from resolute.storage.searcher.v1 import spec_pb2 as pb
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
    """Reads and checks a spec.

    Raises:
        InvalidArgumentError: It lists all that is wrong.
        UnimplementedError: The method is not one of this version's.
    """
    spec = SearchSpec(
        method=_method_from(message),
        metric=message.metric,
        smaller_is_better=message.smaller_is_better,
        seed=message.seed,
        space=_space_from(message.space, path="hyperparameters", depth=0),
        time_metric=message.time_metric if message.HasField("time_metric") else None,
        source_checkpoint_id=message.source_checkpoint_id,
    )
    spec.check()
    return spec


def _method_from(message: pb.SearchSpec) -> MethodSpec:
    match message.WhichOneof("method"):
        case "single":
            return SingleSpec(max_length=_length(message.single))
        case "random":
            return RandomSpec(
                max_length=_length(message.random),
                max_trials=message.random.max_trials,
                max_concurrent_trials=message.random.max_concurrent_trials,
            )
        case "grid":
            return GridSpec(
                max_length=_length(message.grid), max_concurrent_trials=message.grid.max_concurrent_trials
            )
        case "async_halving":
            return _async_halving_from(message.async_halving)
        case "adaptive_asha":
            return _adaptive_asha_from(message.adaptive_asha)
        case "external":
            return external_method_from(message.external)
    raise invalid_spec("searcher.name", "must name a search method")


def _length(method: pb.SingleMethod | pb.RandomMethod | pb.GridMethod) -> int | None:
    return method.max_length if method.HasField("max_length") else None


def _async_halving_from(method: pb.AsyncHalvingMethod) -> AsyncHalvingSpec:
    return AsyncHalvingSpec(
        num_rungs=method.num_rungs,
        max_length=method.max_length,
        max_trials=method.max_trials,
        divisor=method.divisor,
        max_concurrent_trials=method.max_concurrent_trials,
        stop_once=method.stop_once,
        time_driven=method.time_driven,
    )


def _adaptive_asha_from(method: pb.AdaptiveAshaMethod) -> AdaptiveAshaSpec:
    mode = _MODES.get(method.mode)
    if mode is None:
        raise invalid_spec("searcher.mode", "must be aggressive, standard or conservative")
    return AdaptiveAshaSpec(
        max_length=method.max_length,
        max_trials=method.max_trials,
        divisor=method.divisor,
        max_rungs=method.max_rungs,
        max_concurrent_trials=method.max_concurrent_trials,
        mode=mode,
        bracket_rungs=tuple(method.bracket_rungs),
        stop_once=method.stop_once,
        time_driven=method.time_driven,
    )


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
            whole = message.int_range
            return IntRange(whole.minval, whole.maxval, _count(whole))
        case "double_range":
            real = message.double_range
            return DoubleRange(real.minval, real.maxval, _count(real))
        case "log_range":
            power = message.log_range
            return LogRange(power.minval, power.maxval, power.base, _count(power))
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


def _count(axis: pb.IntRange | pb.DoubleRange | pb.LogRange) -> int | None:
    return axis.count if axis.HasField("count") else None
