"""Continuations tell the whole config that comes of them, and take a whole one in the place of changes."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clusters.all_services import CONFIG, AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import continuation_service_pb2 as pb2
from resolute.api.experiments.v1 import continuation_service_pb2_grpc, experiments_service_pb2
from resolute.api.experiments.v1.experiment_pb2 import ExperimentKey
from resolute.contracts.values import to_mapping

KEY = ExperimentKey(number=1)


async def submitted(service: AllServices) -> Any:
    """Creates an experiment with a description and a constant; returns what continues it."""
    config = {**CONFIG, "description": "the first", "hyperparameters": {"rate": 0.5, "width": 8}}
    spec = experiments_service_pb2.ExperimentSpec(config_yaml=yaml.safe_dump(config), paused=True)
    request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
    await service.experiments.CreateExperiment(request)
    return continuation_service_pb2_grpc.ContinuationServiceStub(service.channel)


@pytest.mark.timeout(120)
def test_a_whole_config_leaves_out_what_was_there(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            stub = await submitted(service)
            asked = pb2.ForkExperimentRequest(experiment=KEY, validate_only=True)
            whole = to_mapping((await stub.ForkExperiment(asked)).continuation.config)
            assert whole["description"] == "the first"
            del whole["description"], whole["hyperparameters"]["width"]
            fork = pb2.ForkExperimentRequest(
                experiment=KEY,
                request_id=str(uuid.uuid4()),
                config_yaml=yaml.safe_dump(whole),
                config_is_whole=True,
            )
            answer = await stub.ForkExperiment(fork)
            assert answer.experiment.description == ""
            assert set(to_mapping(answer.continuation.config)["hyperparameters"]) == {"rate"}
            assert to_mapping(answer.experiment.config) == to_mapping(answer.continuation.config)
            merged = pb2.ForkExperimentRequest(
                experiment=KEY, config_yaml="{name: changed}", validate_only=True
            )
            answer = await stub.ForkExperiment(merged)
            assert set(to_mapping(answer.continuation.config)["hyperparameters"]) == {"rate", "width"}

    asyncio.run(body())


@pytest.mark.timeout(120)
def test_every_fault_of_a_whole_config_is_told_with_its_path(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            stub = await submitted(service)
            wrong = {**CONFIG, "bind_mounts": [{"host_path": 7}], "max_restarts": -1, "sercher": {}}
            for config, paths in (
                (yaml.safe_dump(wrong), {"bind_mounts[0].host_path", "max_restarts", "sercher"}),
                ("", {"entrypoint"}),
                ("a: [", {"line 1, column 5"}),
            ):
                request = pb2.ForkExperimentRequest(
                    experiment=KEY, config_yaml=config, config_is_whole=True, validate_only=True
                )
                with pytest.raises(errors.InvalidConfigError) as refused:
                    await stub.ForkExperiment(request)
                assert paths <= {violation.field for violation in refused.value.violations}

    asyncio.run(body())
