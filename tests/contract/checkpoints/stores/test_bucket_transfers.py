"""The SDK's store over real object stores: what is sent comes back, and whatever goes wrong is told."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.object_stores.direct_urls import DirectUrls
from support.object_stores.servers import KINDS, ObjectServer, object_server

from resolute.contracts.files.digests import format_digest, new_hash
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.core.checkpoint.files.manifest import FileEntry, list_directory
from resolute.core.checkpoint.stores.presigned import PresignedStore, UploadTarget
from resolute.errors import DataLossError, FailedPreconditionError, UnavailableError
from resolute.transfer import ranges
from resolute.transfer.transport import Sink, Transport
from resolute.trial_errors import CheckpointNotFound

CONTENT = {"model.pt": b"weights" * 1000, "d/e/模型 +&%?#": b"x", "empty": b"", "metadata.json": b"{}"}


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer]:
    with object_server(request.param, tmp_path_factory.mktemp(request.param), lasting=True) as running:
        yield running


@pytest.fixture
def links(server: ObjectServer) -> DirectUrls:
    return DirectUrls(server, server.new_bucket())


@pytest.fixture
def store(links: DirectUrls) -> PresignedStore:
    return PresignedStore(links, outage_timeout=0.5)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "source", CONTENT)


@pytest.fixture
def checkpoint_id() -> str:
    return str(uuid.uuid4())


def digest_of(data: bytes) -> str:
    summed = new_hash()
    summed.update(data)
    return format_digest(summed)


def fill(directory: Path, content: Mapping[str, bytes]) -> Path:
    for path, data in content.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return directory


def test_what_is_sent_comes_back_and_is_summed_up_on_the_way(
    store: PresignedStore, source: Path, tmp_path: Path, checkpoint_id: str
) -> None:
    entries = store.write(checkpoint_id, source, list_directory(source))
    expected = {path: digest_of(data) for path, data in CONTENT.items()}
    assert {entry.path: entry.digest for entry in entries if not entry.is_directory} == expected
    assert {entry.path for entry in entries if entry.is_directory} == {"d/", "d/e/"}
    paths = [entry.path for entry in entries]
    store.read(checkpoint_id, tmp_path / "target", paths, expected=entries)
    assert list_directory(tmp_path / "target") == list_directory(source)
    assert (tmp_path / "target" / "d/e/模型 +&%?#").read_bytes() == b"x"
    assert store.in_place(checkpoint_id) is None


def test_a_large_file_goes_in_parts_read_once(
    store: PresignedStore, links: DirectUrls, tmp_path: Path, checkpoint_id: str
) -> None:
    data = os.urandom(1 << 20) * (MULTIPART_BYTES >> 20) + b"end"
    source = fill(tmp_path / "source", {"big": data})
    entries = store.write(checkpoint_id, source, ["big"])
    assert entries[0].digest == digest_of(data)
    # Google's store takes any file by one request.
    assert len(entries[0].etags) in {0, 5}
    links.finish(checkpoint_id, entries)
    store.read(checkpoint_id, tmp_path / "target", ["big"], expected=entries)
    assert (tmp_path / "target" / "big").read_bytes() == data


@pytest.mark.sampled(1)
def test_a_large_file_comes_by_several_connections_and_its_end_is_not_made_up(
    store: PresignedStore, links: DirectUrls, tmp_path: Path, checkpoint_id: str
) -> None:
    data = os.urandom(1 << 20) * 70 + b"end"
    source = fill(tmp_path / "source", {"big": data})
    entries = store.write(checkpoint_id, source, ["big"])
    links.finish(checkpoint_id, entries)
    store.read(checkpoint_id, tmp_path / "target", ["big"], expected=entries)
    assert (tmp_path / "target" / "big").read_bytes() == data
    for damaged, problem in (
        (data[: 20 << 20], f"big has {20 << 20} bytes instead of {len(data)}"),
        (data[:-1] + b"x", "big has another content"),
    ):
        links.damage(checkpoint_id, "big", damaged)
        with pytest.raises(DataLossError, match=problem):
            store.read(checkpoint_id, tmp_path / "target", ["big"], expected=entries)


def test_many_large_files_take_no_more_memory_than_two(
    links: DirectUrls, tmp_path: Path, checkpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, files = 64 << 10, 8
    monkeypatch.setattr(ranges, "_RANGE_BYTES", part)
    monkeypatch.setattr(ranges, "_LARGE_BYTES", 8 * part)
    data = os.urandom(8 * part)
    source = fill(tmp_path / "source", {f"big{number}": data for number in range(files)})
    lock, waiting, most = threading.Lock(), 0, 0
    get = Transport.get

    def arrive(transport: Transport, url: str, take: Sink, *, start: int, size: int | None) -> int:
        nonlocal waiting, most
        count = get(transport, url, take, start=start, size=size)
        with lock:
            waiting += count
            most = max(most, waiting)
        return count

    class Slow:
        def advance(self, count: int) -> None:
            nonlocal waiting
            time.sleep(0.01)
            with lock:
                waiting -= count

    entries = PresignedStore(links, outage_timeout=0.5).write(checkpoint_id, source, list_directory(source))
    links.finish(checkpoint_id, entries)
    monkeypatch.setattr(Transport, "get", arrive)
    store = PresignedStore(links, outage_timeout=0.5, watch=lambda *_: Slow())
    store.read(checkpoint_id, tmp_path / "target", [each.path for each in entries], expected=entries)
    assert (tmp_path / "target" / "big7").read_bytes() == data
    assert waiting == 0
    assert part < most <= 2 * 4 * part


def test_urls_that_ran_out_are_asked_for_again(
    store: PresignedStore, links: DirectUrls, source: Path, tmp_path: Path, checkpoint_id: str
) -> None:
    links.expired = 1
    entries = store.write(checkpoint_id, source, ["model.pt"])
    links.expired = 2
    store.read(checkpoint_id, tmp_path / "target", ["model.pt"], expected=entries)
    links.expired = 3
    with pytest.raises(FailedPreconditionError, match="refuses a presigned URL"):
        store.read(checkpoint_id, tmp_path / "target", ["model.pt"], expected=entries)


def test_damaged_objects_are_named_with_what_is_wrong(
    store: PresignedStore, links: DirectUrls, source: Path, tmp_path: Path, checkpoint_id: str
) -> None:
    entries = store.write(checkpoint_id, source, CONTENT)
    links.damage(checkpoint_id, "model.pt", b"Weights" + CONTENT["model.pt"][7:])
    links.damage(checkpoint_id, "metadata.json", b"{")
    with pytest.raises(DataLossError) as caught:
        store.read(checkpoint_id, tmp_path / "target", CONTENT, expected=entries)
    assert "model.pt has another content" in str(caught.value)
    assert "metadata.json has 1 bytes instead of 2" in str(caught.value)
    links.store.remove_files(checkpoint_id, ["empty"])
    with pytest.raises(CheckpointNotFound, match=r"empty of checkpoint .* is gone from its bucket"):
        store.read(checkpoint_id, tmp_path / "target", ["empty"], expected=entries)


def test_a_store_that_is_down_is_waited_for(
    links: DirectUrls, server: ObjectServer, source: Path, tmp_path: Path, checkpoint_id: str
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            server.start()

    store = PresignedStore(links, outage_timeout=60.0, sleep=sleep)
    server.stop()
    entries = store.write(checkpoint_id, source, ["model.pt"])
    assert 0.05 <= pauses[0] <= 0.15
    assert 0.1 <= pauses[1] <= 0.3
    assert store.list(checkpoint_id) == {"model.pt": 7000}
    store.read(checkpoint_id, tmp_path / "target", ["model.pt"], expected=entries)


def test_a_store_that_stays_down_fails_in_the_end(
    store: PresignedStore, server: ObjectServer, source: Path, checkpoint_id: str
) -> None:
    server.stop()
    try:
        with pytest.raises(UnavailableError, match="does not answer"):
            store.write(checkpoint_id, source, CONTENT)
    finally:
        server.start()


def test_files_that_shrink_or_grow_meanwhile_are_refused(
    store: PresignedStore,
    links: DirectUrls,
    source: Path,
    checkpoint_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signed = links.uploads

    replacement = [b""]

    def change(checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, UploadTarget]:
        (source / "model.pt").write_bytes(replacement[0])
        return signed(checkpoint_id, sizes)

    monkeypatch.setattr(links, "uploads", change)
    for replacement[0] in (b"short", b"long" * 10_000):
        (source / "model.pt").write_bytes(CONTENT["model.pt"])
        with pytest.raises(FailedPreconditionError, match=r"model\.pt changed while it was uploaded"):
            store.write(checkpoint_id, source, ["model.pt"])


class _Moody(BaseHTTPRequestHandler):
    """Keeps objects in memory, and fails as often as it is told."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, bytes]
    busy: int
    truncated: int

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._is_busy():
            self.kept[self.path] = data
            self._answer(200, b"")

    def do_GET(self) -> None:
        if self._is_busy():
            return
        data = self.kept[self.path]
        if type(self).truncated:
            type(self).truncated -= 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            return
        self._answer(200, data)

    def _is_busy(self) -> bool:
        if not type(self).busy:
            return False
        type(self).busy -= 1
        self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
        return True

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name


class PlainLinks:
    """URLs of a server that checks none."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def uploads(self, checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, UploadTarget]:
        return {path: UploadTarget(path, (f"{self._base}/{path}",)) for path in sizes}

    def downloads(self, checkpoint_id: str, paths: Sequence[str]) -> Mapping[str, str]:
        return {path: f"{self._base}/{path}" for path in paths}

    def sizes(self, checkpoint_id: str) -> dict[str, int]:
        return {}

    def delete(self, checkpoint_id: str) -> None: ...


@pytest.fixture
def moody() -> Iterator[tuple[type[_Moody], PlainLinks]]:
    handler = type("Handler", (_Moody,), {"kept": {}, "busy": 0, "truncated": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="moody-store", kwargs={"poll_interval": 0.01})
    thread.start()
    yield handler, PlainLinks(server.server_port)
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_busy_store_and_one_that_breaks_off_are_tried_again(
    moody: tuple[type[_Moody], PlainLinks], tmp_path: Path, checkpoint_id: str
) -> None:
    handler, links = moody
    source = fill(tmp_path / "source", {"a": b"a" * 100_000, "b": b"b"})
    pauses: list[float] = []
    store = PresignedStore(links, outage_timeout=60.0, sleep=pauses.append)
    handler.busy = 3
    entries = store.write(checkpoint_id, source, ["a", "b"])
    assert len(pauses) == 3
    handler.busy, handler.truncated = 1, 1
    store.read(checkpoint_id, tmp_path / "target", ["a", "b"], expected=entries)
    assert len(pauses) == 5
    assert (tmp_path / "target" / "a").read_bytes() == b"a" * 100_000


def test_a_target_that_cannot_be_written_is_not_taken_for_a_store_that_is_away(
    moody: tuple[type[_Moody], PlainLinks], tmp_path: Path, checkpoint_id: str
) -> None:
    handler, links = moody
    handler.kept["/a"] = b"a"
    (tmp_path / "a").mkdir()
    store = PresignedStore(links, outage_timeout=60.0)
    with pytest.raises(IsADirectoryError):
        store.read(checkpoint_id, tmp_path, ["a"], expected=[FileEntry("a", 1, "")])


@pytest.mark.parametrize("start", [0, 1, 1 << 18, 300_000, 699_999, 700_000, 800_000])
def test_the_rest_of_an_object_comes_from_a_store_without_ranges_too(
    moody: tuple[type[_Moody], PlainLinks], start: int
) -> None:
    handler, links = moody
    handler.kept["/a"] = os.urandom(700_000)
    taken = bytearray()
    with Transport() as transport:
        count = transport.get(links.downloads("", ["a"])["a"], taken.extend, start=start)
    assert (count, bytes(taken)) == (len(taken), handler.kept["/a"][start:])
