"""Configs that take long to read hold up nobody: leases are renewed meanwhile, and the services stop."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.clusters.all_services import all_services
from support.processes.workers import worker_processes

from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import allocations_service_pb2_grpc, trials_service_pb2
from resolute.api.experiments.v1 import cluster_service_pb2 as cluster
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, NotFoundError, QuotaError, ResoluteError
from resolute_experiments.admission.config_reader import SMALL_CHARACTERS
from resolute_serving.context import TrialRun

RUN = TrialRun(trial_id="none", run=1, experiment_id="none", allocation_id="none", workspace="none")

LARGE = "hyperparameters:\n" + "".join(f"  h{number}: {number}\n" for number in range(60_000))
"""A config of almost 1 MB: reading it takes many times as long as all that this test asks meanwhile."""
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.timeout(500)
def test_leases_are_renewed_while_large_configs_are_read_and_the_services_stop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with all_services(tmp_path) as service:
            requests = experiments.ValidateConfigRequest(config_yaml=LARGE)
            hostile = [
                asyncio.ensure_future(service.experiments.ValidateConfig(requests, timeout=400))
                for _ in range(4)
            ]
            supervisor = service.running.channel(service.running.trial_token(RUN))
            leases: Any = allocations_service_pb2_grpc.AllocationsServiceStub(supervisor)
            renewal = allocations.RenewLeaseRequest(allocation_id="none")
            for _ in range(50):
                with pytest.raises(NotFoundError):
                    await leases.RenewLease(renewal, timeout=60)
            assert not all(one.done() for one in hostile)
            await supervisor.close()
        outcomes = await asyncio.gather(*hostile, return_exceptions=True)
        assert all(isinstance(one, (ResoluteError, asyncio.CancelledError)) for one in outcomes)

    asyncio.run(scenario())
    assert not worker_processes()


@pytest.mark.timeout(300)
def test_configs_that_are_too_large_or_become_too_large_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with all_services(tmp_path) as service:
            for text, kind, message in (
                (LARGE * 4, InvalidArgumentError, f"config_yaml has at least {4 * len(LARGE)} bytes"),
                ("# " + "\u00e9" * 600_000, InvalidArgumentError, "config_yaml has at least 1200002 bytes"),
                (ALIASES, (InvalidArgumentError, QuotaError), None),
            ):
                with pytest.raises(kind, match=message):
                    await service.experiments.ValidateConfig(
                        experiments.ValidateConfigRequest(config_yaml=text), timeout=200
                    )
            template = cluster.SetTemplateRequest(name="t", config_yaml=ALIASES)
            with pytest.raises((InvalidArgumentError, QuotaError)):
                await service.cluster.SetTemplate(template, timeout=200)

    assert len(ALIASES) < SMALL_CHARACTERS
    asyncio.run(scenario())


@pytest.mark.timeout(300)
def test_a_large_description_of_a_run_outside_of_the_cluster_is_read_in_a_worker_process(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with all_services(tmp_path) as service:
            assert not worker_processes()
            config = to_value({"data": {f"k{number}": number for number in range(4_000)}})
            request = trials_service_pb2.BeginRunRequest(
                external_run_id=str(uuid.uuid4()), name="laptop", config=config
            )
            await service.trials.BeginRun(request, timeout=200)
            assert worker_processes()
            await service.trials.BeginRun(
                trials_service_pb2.BeginRunRequest(external_run_id=str(uuid.uuid4()), name="laptop")
            )

    asyncio.run(scenario())
