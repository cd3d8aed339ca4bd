"""The git work tree of a submission is kept with its experiment, given to its forks, and bounded."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clusters.all_services import CONFIG, AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import continuation_service_pb2, continuation_service_pb2_grpc
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.api.experiments.v1.experiment_pb2 import CodeSource, Experiment, ExperimentKey

SOURCE = CodeSource(git_commit="0123456789" * 4, git_branch="main", git_diff="+x\n", git_diff_truncated=True)


async def submit(service: AllServices, source: CodeSource | None) -> Experiment:
    spec = pb2.ExperimentSpec(config_yaml=yaml.safe_dump(CONFIG), paused=True, source=source)
    request = pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
    created: Experiment = (await service.experiments.CreateExperiment(request)).experiment
    return created


@pytest.mark.timeout(120)
def test_it_is_kept_for_one_experiment_and_its_forks(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            assert (await submit(service, SOURCE)).source == SOURCE
            assert not (await submit(service, None)).HasField("source")
            assert (await service.get(1)).source == SOURCE
            assert not (await service.get(2)).HasField("source")
            listed = await service.experiments.ListExperiments(pb2.ListExperimentsRequest())
            assert not any(one.HasField("source") for one in listed.experiments)
            stub: Any = continuation_service_pb2_grpc.ContinuationServiceStub(service.channel)
            request = continuation_service_pb2.ForkExperimentRequest(
                request_id=str(uuid.uuid4()), experiment=ExperimentKey(number=1)
            )
            await stub.ForkExperiment(request)
            assert (await service.get(3)).source == SOURCE
            for wrong in (
                CodeSource(git_commit="main"),
                CodeSource(git_commit=SOURCE.git_commit, git_branch="b" * 1001),
                CodeSource(git_commit=SOURCE.git_commit, git_diff="d" * (256 * 1024 + 1)),
            ):
                with pytest.raises(errors.InvalidArgumentError, match=r"spec\.source"):
                    await submit(service, wrong)

    asyncio.run(body())
