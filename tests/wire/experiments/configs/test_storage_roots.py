"""A config whose checkpoints could not be stored is refused at submission, whatever the way to submit it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from sqlalchemy import Connection
from support.clusters.all_services import CONFIG, AllServices, all_services
from support.services.in_process import serving

from resolute.api.checkpoints.v1 import checkpoints_service_pb2, storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.experiments.v1 import cluster_service_pb2 as cluster
from resolute.api.experiments.v1 import continuation_service_pb2 as continuation
from resolute.api.experiments.v1 import continuation_service_pb2_grpc, experiment_pb2, trials_service_pb2
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute_checkpoints.blobs.roots import BUCKETS_SETTING, DIRECTORIES_SETTING
from resolute_checkpoints.blueprint import BLUEPRINT as CHECKPOINTS
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.store.schema.accounts import users
from resolute_serving.context import Role


def shared(path: Path) -> dict[str, Any]:
    return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(path)}}


@asynccontextmanager
async def rooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> AsyncIterator[AllServices]:
    """All services, of which the one for checkpoints knows only these roots."""
    monkeypatch.setenv(DIRECTORIES_SETTING, str(root))
    monkeypatch.setenv(BUCKETS_SETTING, "weights")
    async with all_services(tmp_path, role=Role.ADMIN, checkpoints_root=tmp_path / "own") as services:
        yield services


def test_no_submission_names_a_storage_outside_of_the_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, elsewhere = tmp_path / "root", shared(tmp_path / "elsewhere")

    async def scenario() -> None:
        async with rooted(tmp_path, monkeypatch, root) as services:
            refused = pytest.raises(
                InvalidArgumentError, match=rf"elsewhere.*{root}.*own.*{DIRECTORIES_SETTING}"
            )
            submitted = await services.create(paused=True, **shared(root / "team"))
            with refused as caught:
                await services.create(paused=True, **elsewhere)
            assert [fault.field for fault in caught.value.violations] == ["checkpoint_storage"]
            whole = yaml.safe_dump({**CONFIG, **elsewhere})
            with refused:
                await services.experiments.ValidateConfig(pb2.ValidateConfigRequest(config_yaml=whole))
            # Neither the template nor the config is wrong by itself.
            template = cluster.SetTemplateRequest(name="t", config_yaml=yaml.safe_dump(elsewhere))
            await services.cluster.SetTemplate(template)
            with refused:
                await services.experiments.ValidateConfig(
                    pb2.ValidateConfigRequest(config_yaml=yaml.safe_dump(CONFIG), template="t")
                )
            key = experiment_pb2.ExperimentKey(number=submitted.number)
            stub: Any = continuation_service_pb2_grpc.ContinuationServiceStub(services.channel)
            with refused:
                await stub.ForkExperiment(
                    continuation.ForkExperimentRequest(
                        request_id=str(uuid.uuid4()), experiment=key, config_yaml=yaml.safe_dump(elsewhere)
                    )
                )
            with refused:
                await services.trials.BeginRun(
                    trials_service_pb2.BeginRunRequest(
                        external_run_id=str(uuid.uuid4()), name="laptop", config=to_value(elsewhere)
                    )
                )
            bucket: dict[str, Any] = {
                "checkpoint_storage": {"type": "s3", "bucket": "others", "access_key": "a"}
            }
            with pytest.raises(InvalidArgumentError, match=f"others.*below weights.*{BUCKETS_SETTING}"):
                await services.create(paused=True, **bucket)

    asyncio.run(scenario())


def test_an_experiment_whose_storage_is_no_root_any_more_does_not_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with rooted(tmp_path, monkeypatch, tmp_path / "before") as services:
            number = (await services.create(paused=True, **shared(tmp_path / "before" / "team"))).number
        async with rooted(tmp_path, monkeypatch, tmp_path / "now") as services:
            stub: Any = continuation_service_pb2_grpc.ContinuationServiceStub(services.channel)
            request = continuation.ContinueExperimentRequest(
                request_id=str(uuid.uuid4()),
                experiment=experiment_pb2.ExperimentKey(number=number),
                validate_only=True,
            )
            for request.config_yaml in ("", "name: again"):
                with pytest.raises(InvalidArgumentError, match=f"before/team.*{DIRECTORIES_SETTING}"):
                    await stub.ContinueExperiment(request)

    asyncio.run(scenario())


def test_configs_of_the_cluster_s_storage_pass_while_the_checkpoints_service_is_away(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with all_services(tmp_path, without=(CHECKPOINTS,)) as services:
            assert (await services.create(paused=True)).number
            bucket: dict[str, Any] = {"checkpoint_storage": {"type": "s3", "bucket": "b"}}
            assert (await services.create(paused=True, **bucket)).number
            # Where others reach the cluster, nobody but that service knows whether a directory may be named.
            with pytest.raises(ResoluteError):
                await services.create(paused=True, **shared(tmp_path / "anywhere"))

    asyncio.run(scenario())


def test_buckets_are_admitted_without_the_library_that_reaches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BUCKETS_SETTING, raising=False)
    bucket = storage_pb2.Storage.Bucket(bucket="b", provider=storage_pb2.Storage.PROVIDER_GCS)
    request = checkpoints_service_pb2.AdmitStorageRequest(storage=storage_pb2.Storage(bucket=bucket))

    async def scenario() -> None:
        async with serving([CHECKPOINTS], tmp_path) as running:
            channel = running.channel(running.service_token())
            stub: Any = CheckpointsServiceStub(channel)
            assert not (await stub.AdmitStorage(request)).refusal
            await channel.close()

    asyncio.run(scenario())


def _let_another_sign_in(connection: Connection) -> None:
    connection.execute(sa.update(users).where(users.c.name != "admin").values(password="salted"))


@pytest.mark.parametrize("shared_with", ["nobody", "another user", "other machines"])
def test_where_others_use_the_cluster_configs_name_directories_below_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_with: str
) -> None:
    monkeypatch.delenv(DIRECTORIES_SETTING, raising=False)
    own = tmp_path / "own"
    elsewhere = [
        shared(tmp_path / "elsewhere"),
        shared(Path("/tmp")),
        {"checkpoint_storage": {"type": "directory", "container_path": "/etc"}},
        {"checkpoint_storage": {"type": "shared_fs", "host_path": "/", "storage_path": "etc"}},
    ]

    async def scenario() -> None:
        async with all_services(tmp_path, role=Role.ADMIN, checkpoints_root=own) as services:
            roots = StorageRoots(
                services.database,
                services.service._clients,
                shared=shared_with == "other machines",
                default={"host_path": str(own)},
            )
            if shared_with == "another user":
                await services.database.write(_let_another_sign_in)
            await roots.require(shared(own))
            await roots.require(shared(own / "team"))
            for named in elsewhere:
                await roots.require(named, by_operator=True)
                if shared_with == "nobody":
                    await roots.require(named)
                else:
                    with pytest.raises(InvalidArgumentError, match=rf"below {own}; .*{DIRECTORIES_SETTING}"):
                        await roots.require(named)

    asyncio.run(scenario())
