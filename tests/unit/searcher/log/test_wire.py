"""Specs and logs survive the way through the contract; what means nothing is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from support.services.searcher import adaptive, spec

from resolute.api.common.v1 import value_pb2
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.spec.adaptive import AdaptiveMode
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, LogRange, Space
from resolute_searcher.state_machine.search import start
from resolute_searcher.wire.contract import contract_entry
from resolute_searcher.wire.events import event_from
from resolute_searcher.wire.log import entry_to
from resolute_searcher.wire.operations import operation_from
from resolute_searcher.wire.spec import spec_from

AXES = spec_pb.Space(
    hyperparameters={
        "const": spec_pb.Hyperparameter(const_value=to_value({"a": [1, None, 2.5]})),
        "int": spec_pb.Hyperparameter(int_range=spec_pb.IntRange(minval=-3, maxval=9, count=4)),
        "double": spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0.0, maxval=1.0, count=2)),
        "log": spec_pb.Hyperparameter(
            log_range=spec_pb.LogRange(minval=-4.0, maxval=-1.0, base=10.0, count=3)
        ),
        "cat": spec_pb.Hyperparameter(categorical=spec_pb.Categorical(vals=[to_value("x"), to_value(1)])),
        "nested": spec_pb.Hyperparameter(
            nested=spec_pb.Space(hyperparameters={"in": spec_pb.Hyperparameter(const_value=to_value(True))})
        ),
    }
)
SPACE = Space(
    {
        "const": Const({"a": [1, None, 2.5]}),
        "int": IntRange(-3, 9, 4),
        "double": DoubleRange(0.0, 1.0, 2),
        "log": LogRange(-4.0, -1.0, 10.0, 3),
        "cat": Categorical(("x", 1)),
        "nested": Space({"in": Const(True)}),
    }
)


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({"single": spec_pb.SingleMethod(max_length=3)}, SingleSpec(max_length=3)),
        ({"single": spec_pb.SingleMethod()}, SingleSpec(max_length=None)),
        (
            {"random": spec_pb.RandomMethod(max_trials=4)},
            RandomSpec(max_length=None, max_trials=4, max_concurrent_trials=0),
        ),
        ({"grid": spec_pb.GridMethod(max_length=9, max_concurrent_trials=2)}, GridSpec(9, 2)),
        (
            {
                "async_halving": spec_pb.AsyncHalvingMethod(
                    num_rungs=2, max_length=9, max_trials=3, divisor=3.0, stop_once=True
                )
            },
            AsyncHalvingSpec(2, 9, 3, 3.0, 0, stop_once=True),
        ),
        (
            {
                "adaptive_asha": spec_pb.AdaptiveAshaMethod(
                    max_length=9,
                    max_trials=3,
                    divisor=3.0,
                    max_rungs=2,
                    max_concurrent_trials=5,
                    mode=spec_pb.ADAPTIVE_MODE_CONSERVATIVE,
                    bracket_rungs=[1, 2],
                    time_driven=True,
                ),
                "time_metric": "epochs",
            },
            AdaptiveAshaSpec(9, 3, 3.0, 2, 5, AdaptiveMode.CONSERVATIVE, (1, 2), time_driven=True),
        ),
    ],
)
def test_a_spec_is_read_field_by_field(fields: dict[str, Any], method: Any) -> None:
    message = spec(**fields, smaller_is_better=False, space=AXES, source_checkpoint_id="c")
    assert spec_from(message) == SearchSpec(
        method=method,
        metric="loss",
        smaller_is_better=False,
        seed=7,
        space=SPACE,
        time_metric=fields.get("time_metric"),
        source_checkpoint_id="c",
    )


def nested(depth: int) -> spec_pb.Space:
    inner = spec_pb.Space()
    for _ in range(depth):
        inner = spec_pb.Space(hyperparameters={"x": spec_pb.Hyperparameter(nested=inner)})
    return inner


@pytest.mark.parametrize(
    ("message", "kind", "complaint"),
    [
        (spec(), InvalidArgumentError, "searcher.name: must name a search method"),
        (
            adaptive(mode=spec_pb.ADAPTIVE_MODE_UNSPECIFIED),
            InvalidArgumentError,
            "searcher.mode: must be",
        ),
        (
            spec(
                single=spec_pb.SingleMethod(),
                space=spec_pb.Space(hyperparameters={"x": spec_pb.Hyperparameter()}),
            ),
            InvalidArgumentError,
            "hyperparameters.x: must be of some kind",
        ),
        (
            spec(
                single=spec_pb.SingleMethod(),
                space=spec_pb.Space(
                    hyperparameters={"x": spec_pb.Hyperparameter(const_value=value_pb2.Value())},
                ),
            ),
            InvalidArgumentError,
            "a value without a kind",
        ),
        (
            spec(single=spec_pb.SingleMethod(), space=nested(26)),
            InvalidArgumentError,
            "nests deeper than 24",
        ),
        (
            spec(external=spec_pb.ExternalMethod(name="optuna")),
            InvalidArgumentError,
            "max_length: must be given",
        ),
        (
            spec(external=spec_pb.ExternalMethod(name="optuna", settings=to_value({"max_length": "1"}))),
            InvalidArgumentError,
            "max_length: is of the wrong kind",
        ),
        (
            spec(external=spec_pb.ExternalMethod(name="optuna", settings=to_value({"prior": 1}))),
            InvalidArgumentError,
            "prior: is unknown",
        ),
        (spec(external=spec_pb.ExternalMethod()), InvalidArgumentError, "must name a search method"),
        (
            spec(
                grid=spec_pb.GridMethod(max_length=1),
                space=spec_pb.Space(
                    hyperparameters={
                        "x": spec_pb.Hyperparameter(
                            nested=spec_pb.Space(
                                hyperparameters={
                                    "y": spec_pb.Hyperparameter(
                                        int_range=spec_pb.IntRange(minval=0, maxval=5)
                                    )
                                }
                            )
                        )
                    }
                ),
            ),
            InvalidArgumentError,
            "hyperparameters.x.y.count: must be given in a grid search",
        ),
    ],
)
def test_a_spec_that_means_nothing_is_refused(
    message: spec_pb.SearchSpec, kind: type[ResoluteError], complaint: str
) -> None:
    with pytest.raises(kind) as caught:
        spec_from(message)
    assert complaint in str(caught.value)


def test_the_deepest_space_that_is_taken_fits_into_every_message() -> None:
    deepest: Any = 1
    for _ in range(12):
        deepest = {"y": deepest}
    inner = spec_pb.Space(hyperparameters={"x": spec_pb.Hyperparameter(const_value=to_value(deepest))})
    for _ in range(12):
        inner = spec_pb.Space(hyperparameters={"x": spec_pb.Hyperparameter(nested=inner)})
    message = spec(single=spec_pb.SingleMethod(max_length=1), space=inner)
    _, first = start(spec_from(spec_pb.SearchSpec.FromString(message.SerializeToString())))
    logged = entry_to(first, search_id=str(UUID(int=1)), event_id="e", time=0.0)
    listed = service_pb.ListEventsResponse(entries=[contract_entry(logged)])
    assert service_pb.ListEventsResponse.FromString(listed.SerializeToString()) == listed
    with pytest.raises(InvalidArgumentError, match="nests deeper than 24"):
        spec_from(spec(single=spec_pb.SingleMethod(max_length=1), space=deeper(inner)))


def deeper(inner: spec_pb.Space) -> spec_pb.Space:
    return spec_pb.Space(hyperparameters={"x": spec_pb.Hyperparameter(nested=inner)})


def test_kinds_of_a_later_version_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="event 'e' is of no kind"):
        event_from(log_pb2.Event(event_id="e"))
    with pytest.raises(InvalidArgumentError, match="an operation is of no kind"):
        operation_from(log_pb2.Operation())
