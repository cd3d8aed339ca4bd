"""Tasks are experiments of another kind: one trial each, left out of lists of experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from support.services.access import Calls, Scenario
from support.services.in_process import Running

from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.errors import InvalidArgumentError, InvalidConfigError

_pb = experiments_service_pb2
SEARCH = experiment_pb2.EXPERIMENT_KIND_SEARCH
COMMAND = experiment_pb2.EXPERIMENT_KIND_COMMAND
TENSORBOARD = experiment_pb2.EXPERIMENT_KIND_TENSORBOARD
SINGLE = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}


async def create(stub: Any, kind: int, **searcher: Any) -> experiment_pb2.Experiment:
    """Creates a paused experiment of a kind."""
    config = {"name": "n", "entrypoint": "true", "searcher": {**SINGLE, **searcher}}
    spec = _pb.ExperimentSpec(config_yaml=yaml.safe_dump(config), paused=True)
    spec.kind = kind  # type: ignore[assignment]
    created: experiment_pb2.Experiment = (
        await stub.CreateExperiment(_pb.CreateExperimentRequest(spec=spec))
    ).experiment
    return created


async def listed(stub: Any, *kinds: int) -> list[int]:
    """The kinds of the experiments that a list has, in the order of their numbers."""
    request = _pb.ListExperimentsRequest(kinds=kinds, order_by="number")  # type: ignore[arg-type]
    return [one.kind for one in (await stub.ListExperiments(request)).experiments]


def test_lists_have_searches_unless_other_kinds_are_named(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, _: Calls) -> None:
        async with running.channel(running.user_token()) as channel:
            stub = ExperimentsServiceStub(channel)
            for kind in (0, COMMAND, TENSORBOARD, SEARCH):
                assert (await create(stub, kind)).kind == (kind or SEARCH)
            assert await listed(stub) == [SEARCH, SEARCH]
            assert await listed(stub, COMMAND) == [COMMAND]
            assert await listed(stub, COMMAND, TENSORBOARD, 0) == [SEARCH, COMMAND, TENSORBOARD, SEARCH]
            with pytest.raises(InvalidArgumentError, match="kinds is 77"):
                await listed(stub, 77)

    play(scenario)


def test_a_task_is_one_trial(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, _: Calls) -> None:
        async with running.channel(running.user_token()) as channel:
            stub = ExperimentsServiceStub(channel)
            with pytest.raises(InvalidConfigError, match=r"searcher\.name: found 'random'; a command is one"):
                await create(stub, COMMAND, name="random", max_trials=2)
            with pytest.raises(InvalidArgumentError, match=r"spec\.kind is 77"):
                await create(stub, 77)
            assert await listed(stub, COMMAND) == []

    play(scenario)
