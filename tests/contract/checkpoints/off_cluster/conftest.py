"""Places for checkpoints outside of a cluster: a directory and the object stores of each provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from support.object_stores.azure import AzureServer, azure_server
from support.object_stores.gcs import GcsServer, gcs_server
from support.object_stores.off_cluster import DirectoryLocation, ProviderLocation, S3Location, StorageLocation
from support.object_stores.s3 import REGION, S3Server, own_s3_server

import resolute
from resolute import core

CONTENT = {"model.pt": b"weights" * 1000, "d/e/模型 +&%?#": b"x", "empty": b"", "z": b"z"}
STEPS = {"steps_completed": 3, "framework": "none"}


class Server(Protocol):
    """A store that can go away and come back."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    with gcs_server(tmp_path_factory.mktemp("gcs")) as running:
        yield running


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    with azure_server(tmp_path_factory.mktemp("azure")) as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with own_s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(params=["directory", "s3", "gcs", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StorageLocation:
    monkeypatch.setenv("AWS_REGION", REGION)
    if request.param == "directory":
        return DirectoryLocation(tmp_path / "store")
    if request.param == "s3":
        return S3Location(request.getfixturevalue("server"))
    return ProviderLocation(request.getfixturevalue(request.param))


@pytest.fixture(params=["s3", "gcs", "azure"])
def distant(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[StorageLocation, Server]:
    """A place in an object store, and the store."""
    monkeypatch.setenv("AWS_REGION", REGION)
    kind = {"s3": "server"}.get(request.param, request.param)
    server = request.getfixturevalue(kind)
    return (S3Location(server) if kind == "server" else ProviderLocation(server)), server


@pytest.fixture
def bucket(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Location:
    monkeypatch.setenv("AWS_REGION", REGION)
    return S3Location(server)


@pytest.fixture(autouse=True)
def off_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: None)


@pytest.fixture
def context(place: StorageLocation) -> Iterator[core.Context]:
    with core.init(checkpoint_storage=place.storage) as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = fill(tmp_path / "source", CONTENT)
    (source / "nothing" / "within").mkdir(parents=True)
    return source


def fill(directory: Path, content: Mapping[str, bytes]) -> Path:
    for path, data in content.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    return directory


def of_bucket(bucket: S3Location) -> dict[str, str]:
    assert isinstance(bucket.storage, dict)
    return bucket.storage
