"""Configs that no program would write: their faults reach whoever sent them, as faults of the request."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from support.clusters.all_services import all_services

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.api.experiments.v1 import trials_service_pb2
from resolute.errors import InvalidArgumentError


def test_faults_reach_the_caller_whatever_and_however_many_they_are(tmp_path: Path) -> None:
    many = "{" + ",".join(f'"k{number}": 1' for number in range(5_000)) + "}"
    bad = {
        '{"name": "\\ud800"}': r"found .*ud800",
        '{"hyperparameters": {"\\ud800": "\\udfff"}}': "found the key",
        '{"name": "\\u0000"}': "without NUL characters",
        '{"a":' * 50_000: "nested too deeply",
        many: "5002 faults",
    }

    async def body() -> None:
        async with all_services(tmp_path) as services:
            for config, said in bad.items():
                with pytest.raises(InvalidArgumentError, match=said) as caught:
                    await services.experiments.ValidateConfig(pb2.ValidateConfigRequest(config_yaml=config))
                assert caught.value.violations
            assert caught.value.violations[-1].description.startswith("and 4")

    asyncio.run(body())


def test_an_experiment_that_no_run_could_find_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as services:
            request = trials_service_pb2.BeginRunRequest(
                external_run_id=str(uuid.uuid4()), name="laptop", experiment_only=True
            )
            with pytest.raises(InvalidArgumentError, match="experiment_only needs one"):
                await services.trials.BeginRun(request)
            request.external_experiment_id = "night"
            made = await services.trials.BeginRun(request)
            assert made.experiment_number
            assert not made.HasField("trial")
            listed = await services.experiments.ListExperiments(pb2.ListExperimentsRequest())
            assert [(one.number, one.trial_count) for one in listed.experiments] == [
                (made.experiment_number, 0)
            ]

    asyncio.run(body())
