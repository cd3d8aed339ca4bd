"""What a person downloads: every legal name, directories of other checkpoints, bad days of a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.proxy import (
    FINE,
    Disturbance,
    ProxyBehaviour,
    ProxyRequest,
    StoreProxy,
    store_proxy,
)
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.client.connection.session import Session
from resolute.client.downloads import sources
from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.sources import DownloadMode
from resolute.client.remote.checkpoints import Checkpoints, Presigned
from resolute.errors import FailedPreconditionError, NotFoundError, UnavailableError

Storage = str | dict[str, str]


@pytest.fixture
def proxy(server: S3Server) -> Iterator[StoreProxy]:
    with store_proxy(server) as running:
        yield running


@pytest.fixture
def bucket(bucket_trial: Trial, server: S3Server, proxy: StoreProxy) -> dict[str, str]:
    return {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": proxy.server.endpoint_url}


@pytest.fixture(params=["directory", "bucket"])
def storage(request: pytest.FixtureRequest, bucket: dict[str, str], tmp_path: Path) -> Storage:
    return str(tmp_path / "store") if request.param == "directory" else bucket


@pytest.fixture
def registry(bucket_trial: Trial) -> Iterator[Checkpoints]:
    running = bucket_trial.services
    variables = {"RESOLUTE_MASTER": running.address, "RESOLUTE_TOKEN": running.running.user_token()}
    with Session.find(environment=variables) as session:
        yield Checkpoints(session)


Store = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Stores files as a checkpoint and gives its UUID."""

    def write(storage: Storage, files: dict[str, bytes], *, steps: int = 1) -> str:
        source = tmp_path / f"source{steps}"
        for name, data in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(data)
        with core.init(checkpoint_storage=storage) as context:
            return str(context.checkpoint.upload(source, {"steps_completed": steps}))

    return write


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "metadata.json"
    }


def for_each(name: str, *, times: int, trouble: Disturbance) -> ProxyBehaviour:
    """Troubles the first requests for the bytes of one file."""
    left = [times]

    def mood(asked: ProxyRequest) -> Disturbance:
        if asked.method != "GET" or not asked.path.endswith(name) or not left[0]:
            return FINE
        left[0] -= 1
        return trouble

    return mood


@pytest.mark.parametrize("mode", [DownloadMode.DIRECT, DownloadMode.MASTER])
def test_every_name_that_can_be_stored_comes_back(
    storage: Storage, store: Store, registry: Checkpoints, tmp_path: Path, mode: DownloadMode
) -> None:
    names = [
        "n" * 255,
        "x",
        ".x.partial",
        ".metadata.json.partial",
        ".partial-",
        "/".join(["字" * 80, "ж" * 120, "x" * 200, "e\u0301" * 60]),
        "نموذج",
        " leading and trailing ",
        "+&%?#=;:@[]{}|\\^`'\"",
        "-rf",
        ".hidden",
        "a\nb\tc",
    ]
    files = {name: name.encode() * (1 + place) for place, name in enumerate(names)} | {"zero": b""}
    (tmp_path / "source1" / "empty" / "within").mkdir(parents=True)
    checkpoint = registry.get(store(storage, files))
    for _ in range(2):
        download(checkpoint, tmp_path / "back", registry=registry, mode=mode)
        assert files_in(tmp_path / "back") == files
    assert (tmp_path / "back" / "empty" / "within").is_dir()
    assert (tmp_path / "back" / "metadata.json").is_file()


def test_a_checkpoint_may_have_the_name_under_which_its_own_download_would_lie(
    bucket: dict[str, str], registry: Checkpoints, tmp_path: Path
) -> None:
    with (
        core.init(checkpoint_storage=bucket) as context,
        context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id),
    ):
        (path / f".partial-{checkpoint_id}").mkdir()
        (path / f".partial-{checkpoint_id}" / "x").write_bytes(b"kept")
    for _ in range(2):
        download(registry.get(checkpoint_id), tmp_path / "back", registry=registry)
    assert files_in(tmp_path / "back") == {f".partial-{checkpoint_id}/x": b"kept"}


def test_a_directory_of_another_checkpoint_is_refused_and_stays_as_it_is(
    bucket: dict[str, str], store: Store, registry: Checkpoints, proxy: StoreProxy, tmp_path: Path
) -> None:
    first = registry.get(store(bucket, {"model": b"1", "same": b"s"}, steps=1))
    second = registry.get(store(bucket, {"model": b"2", "same": b"s"}, steps=2))
    download(first, tmp_path / "back", registry=registry)
    with pytest.raises(FailedPreconditionError, match=f"another checkpoint than {second.uuid}") as caught:
        download(second, tmp_path / "back", registry=registry)
    assert "(metadata.json, model); download into an empty directory" in str(caught.value)
    assert files_in(tmp_path / "back") == {"model": b"1", "same": b"s"}
    proxy.behaviour = for_each("model", times=99, trouble=Disturbance(status=404))
    with pytest.raises(NotFoundError, match=r"model of checkpoint .* is gone from its bucket"):
        download(first, tmp_path / "half", registry=registry)
    with pytest.raises(FailedPreconditionError, match=f"an unfinished download of checkpoint {first.uuid}"):
        download(second, tmp_path / "half", registry=registry)


def test_what_is_there_is_compared_and_only_what_is_missing_fetched(
    bucket: dict[str, str], store: Store, registry: Checkpoints, proxy: StoreProxy, tmp_path: Path
) -> None:
    checkpoint = registry.get(store(bucket, {"model": b"1", "other": b"o"}))
    download(checkpoint, tmp_path / "back", registry=registry)
    (tmp_path / "back" / "other").unlink()
    proxy.requests.clear()
    download(checkpoint, tmp_path / "back", registry=registry)
    assert files_in(tmp_path / "back") == {"model": b"1", "other": b"o"}
    assert [Path(path).name for path in proxy.object_names("GET")] == ["other"]
    (tmp_path / "back" / "model").write_bytes(b"X")
    with pytest.raises(FailedPreconditionError, match=r"files that were changed \(model\)"):
        download(checkpoint, tmp_path / "back", registry=registry)


def test_urls_that_ran_out_are_renewed(
    bucket: dict[str, str],
    store: Store,
    registry: Checkpoints,
    server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    files = {"model": b"m" * 1000, "other": b"o"}
    checkpoint = registry.get(store(bucket, files))
    signed, asked = registry.presigned, list[Sequence[str]]()

    def first_expired(key: str, paths: Sequence[str]) -> list[Presigned]:
        asked.append(paths)
        if len(asked) > 1:
            return signed(key, paths)
        names = {path: f"{key}/{path}" for path in paths}
        return [
            Presigned(path, server.expired_url("GET", bucket["bucket"], name)) for path, name in names.items()
        ]

    monkeypatch.setattr(registry, "presigned", first_expired)
    download(checkpoint, tmp_path / "back", registry=registry, mode=DownloadMode.DIRECT)
    assert files_in(tmp_path / "back") == files
    assert sorted(path for paths in asked[1:] for path in paths) == ["metadata.json", "model", "other"]


@pytest.mark.parametrize("trouble", [Disturbance(status=503), Disturbance(cut=True)])
def test_a_store_that_is_busy_or_breaks_off_is_tried_again_from_where_it_was(
    bucket: dict[str, str],
    store: Store,
    registry: Checkpoints,
    proxy: StoreProxy,
    tmp_path: Path,
    trouble: Disturbance,
) -> None:
    files = {"model": os.urandom(1 << 20), "other": b"o"}
    checkpoint = registry.get(store(bucket, files))
    proxy.behaviour = for_each("model", times=2, trouble=trouble)
    download(checkpoint, tmp_path / "back", registry=registry)
    assert files_in(tmp_path / "back") == files
    assert len([path for path in proxy.object_names("GET") if path.endswith("model")]) == 3


def test_a_store_that_stays_away_ends_the_download_and_the_next_goes_on(
    bucket: dict[str, str],
    store: Store,
    registry: Checkpoints,
    proxy: StoreProxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    files = {f"{place:03}": bytes([place]) * 10 for place in range(100)} | {"model": b"m"}
    checkpoint = registry.get(store(bucket, files))
    proxy.behaviour = for_each("model", times=99, trouble=Disturbance(status=503))
    monkeypatch.setattr(sources, "OUTAGE_TIMEOUT", 0.2)
    with pytest.raises(UnavailableError, match="is busy"):
        download(checkpoint, tmp_path / "back", registry=registry)
    assert not (tmp_path / "back" / "metadata.json").exists()
    there = set(files_in(tmp_path / "back"))
    proxy.behaviour = lambda _: FINE
    proxy.requests.clear()
    download(checkpoint, tmp_path / "back", registry=registry)
    assert files_in(tmp_path / "back") == files
    assert not there & {Path(path).name for path in proxy.object_names("GET")}
