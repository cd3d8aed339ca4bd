"""The scenario of clients/scenario.md, in each language on one cluster."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from clients.programs import SCENARIOS
from support.clusters.embedded import EmbeddedCluster, embedded
from support.pages.commands import ROOT
from support.services.gateway import need_http
from support.services.processes.gateway import GatewayProcess
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2

need_http()
PASSWORD = "Correct-Horse-9"
FAILURES = {
    "noToken": "UNAUTHENTICATED",
    "noSuchExperiment": "NOT_FOUND",
    "wrongConfig": "INVALID_CONFIG",
    "endedExperiment": "ILLEGAL_TRANSITION",
    "sameRequestId": "ALREADY_EXISTS",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster with HTTP and a user with a password."""
    with embedded(tmp_path_factory.mktemp("cluster") / "home", RESOLUTE_NO_HTTP="") as running:
        with running.client() as client:
            client.create_user("ada", password=PASSWORD)
        yield running


def _status(cluster: EmbeddedCluster, name: str) -> str:
    return str(json.loads(cluster.run("resolute", "status", "--json").stdout)[name])


def _environment(url: str, folder: Path) -> Mapping[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RESOLUTE_HOME": str(folder / "nobody"),
        "RESOLUTE_URL": url,
        "RESOLUTE_USER": "ada",
        "RESOLUTE_PASSWORD": PASSWORD,
    }


@pytest.mark.e2e
@pytest.mark.parametrize("language", SCENARIOS)
def test_a_client_runs_a_search_and_reads_what_it_left(
    language: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    program = SCENARIOS[language]
    program.need()
    downloads = tmp_path / "downloads"
    done = subprocess.run(
        [*program.command, str(ROOT / "clients/scenario"), str(downloads)],
        env=_environment(_status(cluster, "http_url"), tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["failures"] == FAILURES
    assert found["state"] == "COMPLETED"
    assert found["best"] == 0.1
    assert found["steps"] == [1, 2, 3]
    assert found["losses"] == pytest.approx([0.1, 0.05, 0.1 / 3])
    assert found["log"] == ["step 1", "step 2", "step 3"]
    assert found["files"] == _digests(downloads, like=found["files"])
    assert (downloads / "weights/rate").read_text() == "0.1"
    assert (downloads / "empty").read_bytes() == b""
    with cluster.client() as client:
        assert client.get_trial(found["trial"]).hparams["rate"] == 0.1
        assert client.get_trial(found["trial"]).experiment_id == found["experiment"]
        assert client.get_experiment(found["experiment"]).owner == "ada"


@pytest.mark.e2e
@pytest.mark.parametrize("language", [name for name in SCENARIOS if name != "python"])
def test_a_path_that_leads_out_of_the_folder_is_refused(
    language: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    program = SCENARIOS[language]
    program.need()
    command = [*program.command, str(ROOT / "clients/scenario"), str(tmp_path / "downloads")]

    async def run() -> tuple[int | None, bytes]:
        async with _dishonest_checkpoints() as checkpoints:
            gateway = GatewayProcess(_status(cluster, "address"), checkpoints=checkpoints)
            try:
                await asyncio.to_thread(gateway.start)
                process = await asyncio.create_subprocess_exec(
                    *command, env=_environment(gateway.url, tmp_path), stderr=asyncio.subprocess.PIPE
                )
                _, said = await asyncio.wait_for(process.communicate(), 200)
                return process.returncode, said
            finally:
                await asyncio.to_thread(gateway.kill)

    code, said = asyncio.run(run())
    assert code != 0
    assert b"../outside lies outside of its checkpoint" in said
    assert not (tmp_path / "outside").exists()


@asynccontextmanager
async def _dishonest_checkpoints() -> AsyncIterator[str]:
    """A service whose checkpoints have a file beside their folder."""
    content = b"content"
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    file = checkpoint_pb2.File(path="../outside", size=len(content), digest=digest)

    async def list_files(_request: bytes, _context: Any) -> bytes:
        return checkpoints_service_pb2.ListFilesResponse(files=[file]).SerializeToString()

    async def read_file(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield checkpoints_service_pb2.ReadFileResponse(data=content).SerializeToString()

    service = "/resolute.api.checkpoints.v1.CheckpointsService"
    async with scripted_grpc(
        unary={f"{service}/ListFiles": list_files}, streams={f"{service}/ReadFile": read_file}
    ) as address:
        yield address


def _digests(folder: Path, *, like: Mapping[str, str]) -> dict[str, str]:
    """The digests of the downloaded files, made as those that the client has told."""
    makers: dict[str, Callable[[bytes], Any]] = {"blake3": blake3, "sha256": hashlib.sha256}
    digests = {}
    for path, digest in like.items():
        algorithm = digest.partition(":")[0]
        digests[path] = f"{algorithm}:{makers[algorithm]((folder / path).read_bytes()).hexdigest()}"
    return digests
