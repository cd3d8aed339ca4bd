"""Specs of methods that the contract knows only by name: methods of a client, a model or a plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError, Violation
from resolute_searcher.spec.search import CustomSpec, ModelSpec, PluginSpec

CUSTOM = "custom"
"""Name of searches that a client drives."""
MODEL = "optuna"
"""Name of searches by Optuna's samplers."""
SAMPLERS = ("tpe", "gp", "cmaes", "qmc", "random")
"""The samplers by the names that configs call them."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "max_length": int,
    "max_trials": int,
    "sampler": str,
    "settings": dict,
    "max_concurrent_trials": int,
    "num_rungs": int,
    "divisor": (int, float),
}


def external_method_from(message: pb.ExternalMethod) -> CustomSpec | ModelSpec | PluginSpec:
    """Converts the spec of a method that the contract knows by name only.

    Raises:
        InvalidArgumentError: Its settings are wrong.
    """
    settings = to_mapping(message.settings) if message.HasField("settings") else {}
    if message.name == CUSTOM:
        return CustomSpec()
    if message.name == MODEL:
        return _model(settings)
    if not message.name:
        raise invalid_spec("searcher.name", "must name a search method")
    return PluginSpec(message.name, settings)


def _model(settings: dict[str, Any]) -> ModelSpec:
    known = {field.name for field in fields(ModelSpec)}
    for name, value in settings.items():
        if name not in known:
            raise invalid_spec(
                f"searcher.{name}", f"is unknown; a search by {MODEL} has {', '.join(sorted(known))}"
            )
        if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
            raise invalid_spec(f"searcher.{name}", f"is of the wrong kind: {value!r}")
    for name in ("max_length", "max_trials"):
        if name not in settings:
            raise invalid_spec(f"searcher.{name}", "must be given")
    if settings.get("sampler", "tpe") not in SAMPLERS:
        raise invalid_spec(
            "searcher.sampler", f"must be one of {', '.join(SAMPLERS)}, not {settings['sampler']!r}"
        )
    return ModelSpec(**settings)


def invalid_spec(path: str, problem: str) -> InvalidArgumentError:
    """Returns the error for an invalid field of a spec."""
    violation = Violation(field=path, description=problem)
    return InvalidArgumentError(f"the search spec is wrong: {violation}", violations=[violation])
