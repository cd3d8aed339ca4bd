"""Configs that no program would write: their faults reach whoever sent them, as faults of the request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clusters.all_services import all_services

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
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
