"""The search spec of a checked config, as a message of the searcher's contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from resolute.api.searcher.v1 import search_spec_pb2
from resolute.contracts.values import to_value
from resolute.errors import InvalidConfigError, Violation

_MODES = {
    "aggressive": search_spec_pb2.ADAPTIVE_MODE_AGGRESSIVE,
    "standard": search_spec_pb2.ADAPTIVE_MODE_STANDARD,
    "conservative": search_spec_pb2.ADAPTIVE_MODE_CONSERVATIVE,
}


def search_spec(config: Mapping[str, Any], *, source_checkpoint_id: str = "") -> search_spec_pb2.SearchSpec:
    """Builds the spec of an experiment's search.

    Args:
        config: The whole checked config, defaults filled in.
        source_checkpoint_id: Checkpoint that every trial starts from; empty for none.

    Raises:
        InvalidConfigError: The search method cannot run here.
    """
    searcher = config["searcher"]
    spec = search_spec_pb2.SearchSpec(
        metric=searcher.get("metric") or "",
        smaller_is_better=searcher["smaller_is_better"],
        seed=config["reproducibility"]["experiment_seed"],
        space=_space(config["hyperparameters"]),
        source_checkpoint_id=source_checkpoint_id or None,
    )
    if searcher.get("time_metric"):
        spec.time_metric = searcher["time_metric"]
    builder = _METHODS.get(searcher["name"])
    if builder is None:
        message = (
            f"the search method {searcher['name']!r} cannot run here; choose one of {', '.join(_METHODS)}"
        )
        raise InvalidConfigError(message, violations=[Violation("searcher.name", message)])
    builder(spec, searcher)
    return spec


def works_by_operations(config: Mapping[str, Any]) -> bool:
    """Whether the search hands out lengths to train to; if not, trials end by themselves or by a signal."""
    searcher = config["searcher"]
    if searcher["name"] in ("custom", "plugin"):
        return True
    return length_of(searcher) is not None and not searcher.get("time_metric")


def length_of(searcher: Mapping[str, Any]) -> int | None:
    """Returns the length of the longest trial, in whatever unit.

    Returns:
        None where trials end by themselves: without a length, and with 0, which asks for no training.
    """
    length = searcher.get("max_length")
    if isinstance(length, Mapping):
        length = next(iter(length.values()))
    return int(length) if length else None


def _limit(searcher: Mapping[str, Any]) -> int:
    """Length of the top rung: in searches driven by a time metric, its limit."""
    if searcher.get("time_metric"):
        return int(searcher["max_time"])
    return length_of(searcher) or 1


def _single(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    spec.single.SetInParent()
    if (length := length_of(searcher)) is not None:
        spec.single.max_length = length


def _random(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    spec.random.max_trials = searcher["max_trials"]
    if searcher["max_concurrent_trials"]:
        spec.random.max_concurrent_trials = searcher["max_concurrent_trials"]
    if (length := length_of(searcher)) is not None:
        spec.random.max_length = length


def _grid(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    spec.grid.SetInParent()
    if searcher["max_concurrent_trials"]:
        spec.grid.max_concurrent_trials = searcher["max_concurrent_trials"]
    if (length := length_of(searcher)) is not None:
        spec.grid.max_length = length


def _async_halving(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    spec.async_halving.MergeFrom(
        search_spec_pb2.AsyncHalvingMethod(
            num_rungs=searcher["num_rungs"],
            max_length=_limit(searcher),
            max_trials=searcher["max_trials"],
            divisor=searcher["divisor"],
            max_concurrent_trials=searcher["max_concurrent_trials"] or None,
            stop_once=searcher.get("stop_once", False),
            time_driven=bool(searcher.get("time_metric")),
        )
    )


def _adaptive_asha(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    spec.adaptive_asha.MergeFrom(
        search_spec_pb2.AdaptiveAshaMethod(
            max_length=_limit(searcher),
            max_trials=searcher["max_trials"],
            divisor=searcher["divisor"],
            max_rungs=searcher["max_rungs"],
            max_concurrent_trials=searcher["max_concurrent_trials"] or None,
            mode=_MODES[searcher["mode"]],
            bracket_rungs=searcher.get("bracket_rungs") or [],
            stop_once=searcher.get("stop_once", False),
            time_driven=bool(searcher.get("time_metric")),
        )
    )


def _optuna(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    settings = {
        "max_length": length_of(searcher),
        "max_trials": searcher["max_trials"],
        "sampler": searcher["sampler"],
        "settings": searcher.get("sampler_settings") or {},
        "max_concurrent_trials": searcher["max_concurrent_trials"],
        "num_rungs": searcher["num_rungs"],
        "divisor": searcher["divisor"],
    }
    spec.external.MergeFrom(search_spec_pb2.ExternalMethod(name="optuna", settings=to_value(settings)))


def _custom(spec: search_spec_pb2.SearchSpec, _searcher: Mapping[str, Any]) -> None:
    spec.external.name = "custom"


def _plugin(spec: search_spec_pb2.SearchSpec, searcher: Mapping[str, Any]) -> None:
    settings = to_value(dict(searcher.get("settings") or {}))
    spec.external.MergeFrom(search_spec_pb2.ExternalMethod(name=searcher["method"], settings=settings))


_METHODS: Mapping[str, Callable[[search_spec_pb2.SearchSpec, Mapping[str, Any]], None]] = {
    "single": _single,
    "random": _random,
    "grid": _grid,
    "async_halving": _async_halving,
    "asha": _async_halving,
    "adaptive_asha": _adaptive_asha,
    "optuna": _optuna,
    "custom": _custom,
    "plugin": _plugin,
}


def _space(hyperparameters: Mapping[str, Any]) -> search_spec_pb2.Space:
    return search_spec_pb2.Space(
        hyperparameters={name: _hyperparameter(value) for name, value in hyperparameters.items()}
    )


def _hyperparameter(value: Any) -> search_spec_pb2.Hyperparameter:
    if not isinstance(value, Mapping):
        return search_spec_pb2.Hyperparameter(const_value=to_value(value))
    kind = value.get("type")
    if not isinstance(kind, str):
        return search_spec_pb2.Hyperparameter(nested=_space(value))
    if kind == "const":
        return search_spec_pb2.Hyperparameter(const_value=to_value(value["val"]))
    if kind == "categorical":
        choices = search_spec_pb2.Categorical(vals=[to_value(choice) for choice in value["vals"]])
        return search_spec_pb2.Hyperparameter(categorical=choices)
    if kind == "int":
        whole = search_spec_pb2.IntRange(
            minval=value["minval"], maxval=value["maxval"], count=value.get("count")
        )
        return search_spec_pb2.Hyperparameter(int_range=whole)
    bounds = {"minval": value["minval"], "maxval": value["maxval"], "count": value.get("count")}
    if kind == "double":
        return search_spec_pb2.Hyperparameter(double_range=search_spec_pb2.DoubleRange(**bounds))
    return search_spec_pb2.Hyperparameter(log_range=search_spec_pb2.LogRange(base=value["base"], **bounds))
