"""A store that is slow, full, busy, silent or wrong: each ends well or with an error that says what to do.

Real services, a real S3 server, and a proxy between them that does the damage. Whatever happens, nobody sees
a checkpoint that is not whole.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.direct_urls import DirectUrls
from support.object_stores.proxy import FINE, Disturbance, ProxyBehaviour, ProxyRequest, StoreProxy
from support.object_stores.s3 import S3Server, parts_in
from support.training.ranks.threads import rank_outcomes
from support.waiting import wait_until

from resolute import core
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.core import DistributedContext
from resolute.core.checkpoint.stores.presigned import PresignedStore
from resolute.core.remote.session import OUTAGE_TIMEOUT_VARIABLE
from resolute.errors import DataLossError, FailedPreconditionError, QuotaError, UnavailableError
from resolute.rpc.channel import open_channel

DEADLINE = 30.0
CONTENT = {"small": b"s" * 1000, "d/large": b"large" * 200_000}
BIG = {"big": b"b" * (MULTIPART_BYTES + 1)}


class StoreScenario:
    """A bucket behind the proxy, with the trial that writes to it."""

    def __init__(self, trial: Trial, proxy: StoreProxy, server: S3Server) -> None:
        self.trial = trial
        self.bucket = server.new_bucket()
        self.storage = {"type": "s3", "bucket": self.bucket, "endpoint_url": proxy.server.endpoint_url}
        self._server = server

    def init(self) -> Any:
        return core.init(checkpoint_storage=self.storage)

    def visible(self) -> list[str]:
        """Checkpoints that anyone would restore."""
        running = self.trial.services.running
        with open_channel(self.trial.services.address, token=running.user_token) as channel:
            request = api.ListCheckpointsRequest(trial_ids=[self.trial.trial_id])
            found = CheckpointsServiceStub(channel).ListCheckpoints(request, timeout=DEADLINE).checkpoints
        return [checkpoint.checkpoint_id for checkpoint in found]

    def stored(self) -> set[str]:
        """Checkpoints of which there are objects."""
        found = self._server.client().list_objects(self.bucket, recursive=True)
        return {(item.object_name or "").split("/")[0] for item in found}


@pytest.fixture
def room(trial: Trial, proxy: StoreProxy, server: S3Server) -> StoreScenario:
    return StoreScenario(trial, proxy, server)


def store(context: Any, content: dict[str, bytes], *, steps: int = 1) -> str:
    """Writes a checkpoint; returns its identifier."""
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, checkpoint_id):
        for name, data in content.items():
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_bytes(data)
    return str(checkpoint_id)


def holds(context: Any, checkpoint_id: str, content: dict[str, bytes]) -> bool:
    with context.checkpoint.restore_path(checkpoint_id) as path:
        return all((path / name).read_bytes() == data for name, data in content.items())


def on(method: str, name: str, trouble: Disturbance, *, times: int = 10**6) -> ProxyBehaviour:
    """Disturbance for the first requests of a method about an object, or one of its parts."""
    left = [times]

    def mood(asked: ProxyRequest) -> Disturbance:
        if asked.method != method or not asked.path.endswith(name) or not left[0]:
            return FINE
        left[0] -= 1
        return trouble

    return mood


@pytest.mark.integration
def test_a_slow_store_takes_its_time_and_nothing_is_seen_before(
    room: StoreScenario, proxy: StoreProxy
) -> None:
    seen: list[list[str]] = []
    proxy.behaviour = on("PUT", "", Disturbance(pace=1_000_000))
    with room.init() as context:
        writer = threading.Thread(target=lambda: store(context, CONTENT), name="writer")
        writer.start()
        wait_until(lambda: bool(proxy.object_names("PUT")), what="an upload")
        while writer.is_alive() and len(seen) < 5:
            seen.append(room.visible())
        writer.join()
        assert seen[0] == []
        (checkpoint_id,) = room.visible()
        proxy.behaviour = on("GET", "d/large", Disturbance(pace=1_000_000))
        assert holds(context, checkpoint_id, CONTENT)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("answer", "method", "content"),
    [
        (Disturbance(status=507), "PUT", CONTENT),
        (Disturbance(status=507), "PUT", BIG),
        (Disturbance(status=400, answer=b"<Error><Code>QuotaExceeded</Code></Error>"), "PUT", CONTENT),
        (Disturbance(status=507, answer=b"<Error><Code>XMinioStorageFull</Code></Error>"), "POST", BIG),
    ],
    ids=["small", "parts", "quota", "putting together"],
)
def test_a_full_store_is_named_and_keeps_nothing_of_what_did_not_fit(
    room: StoreScenario,
    proxy: StoreProxy,
    monkeypatch: pytest.MonkeyPatch,
    answer: Disturbance,
    method: str,
    content: dict[str, bytes],
) -> None:
    # Otherwise uploads wait for room as for a store that is away. A second is enough to
    # repeat what this server refuses by itself when two files make one directory at once.
    monkeypatch.setenv(OUTAGE_TIMEOUT_VARIABLE, "1")
    (name,) = [name for name in content if "small" not in name]
    with room.init() as context:
        before = store(context, {"small": b"before"})
        proxy.behaviour = on(method, name, answer)
        with pytest.raises(QuotaError, match=r"is full .*; free some space and repeat"):
            store(context, content, steps=2)
        proxy.behaviour = lambda _: FINE
        assert room.visible() == [before]
        wait_until(lambda: room.stored() == {before}, what="the removal of what did not fit")
        assert holds(context, store(context, content, steps=2), content)
        assert holds(context, before, {"small": b"before"})


@pytest.mark.integration
def test_ranks_that_write_different_files_of_one_name_are_refused_before_a_byte_is_sent(
    room: StoreScenario, proxy: StoreProxy, tmp_path: Path
) -> None:
    def work(dist: DistributedContext, contents: tuple[bytes, bytes]) -> str:
        source = tmp_path / uuid.uuid4().hex
        source.mkdir()
        (source / "model").write_bytes(contents[dist.rank])
        with core.init(distributed=dist, checkpoint_storage=room.storage) as context:
            return context.checkpoint.upload(source, {"steps_completed": 1}, shard=True)

    for outcome in rank_outcomes(2, lambda dist: work(dist, (b"one", b"two"))):
        assert isinstance(outcome, RuntimeError)
        assert "files conflicts: model on ranks 0, 1" in str(outcome)
    assert (room.visible(), proxy.object_names("PUT")) == ([], [])
    first, second = rank_outcomes(2, lambda dist: work(dist, (b"same", b"same")))
    assert first == second
    assert room.visible() == [first]
    assert sorted(proxy.object_names("PUT")) == sorted(
        f"{room.bucket}/{first}/{name}" for name in ("model", "metadata.json")
    )


@pytest.mark.integration
def test_a_service_that_is_restarted_in_the_midst_of_an_upload_goes_on_with_it(
    room: StoreScenario, proxy: StoreProxy
) -> None:
    go_on = threading.Event()
    proxy.behaviour = on("PUT", "big", Disturbance(until=go_on))
    with room.init() as context:
        writer = threading.Thread(target=lambda: store(context, BIG | CONTENT), name="writer")
        writer.start()
        wait_until(
            lambda: any(path.endswith("big") for path in proxy.object_names("PUT")),
            what="an upload",
        )
        room.trial.services.down()
        room.trial.services.up()
        assert room.visible() == []
        go_on.set()
        writer.join()
        (checkpoint_id,) = room.visible()
        assert holds(context, checkpoint_id, BIG | CONTENT)


@pytest.mark.integration
def test_a_url_that_ran_out_on_the_way_is_asked_for_again(
    trial: Trial, room: StoreScenario, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_CHECKPOINTS_URL_SECONDS", "1")
    trial.services.down()
    trial.services.up()
    late = threading.Event()
    timer = threading.Timer(2.2, late.set)
    proxy.behaviour = on("PUT", "small", Disturbance(until=late), times=1)
    with room.init() as context:
        timer.start()
        checkpoint_id = store(context, {"small": b"late"})
        assert len([path for path in proxy.object_names("PUT") if path.endswith("small")]) == 2
        assert holds(context, checkpoint_id, {"small": b"late"})


@pytest.mark.integration
def test_a_large_file_whose_url_ran_out_begins_anew_and_leaves_no_part_of_before(
    room: StoreScenario, proxy: StoreProxy, server: S3Server
) -> None:
    proxy.behaviour = on("PUT", "big", Disturbance(status=403), times=1)
    with room.init() as context:
        checkpoint_id = store(context, BIG)
        assert len([path for path in proxy.object_names("POST") if path.endswith("big")]) == 3
        wait_until(lambda: parts_in(server, room.bucket) == [], what="the removal of parts")
        assert room.visible() == [checkpoint_id]
        assert holds(context, checkpoint_id, BIG)


@pytest.mark.integration
def test_a_store_that_refuses_every_url_fails_the_checkpoint_and_says_where_to_look(
    room: StoreScenario, proxy: StoreProxy
) -> None:
    proxy.behaviour = on(
        "PUT", "", Disturbance(status=403, answer=b"<Error><Code>AccessDenied</Code></Error>")
    )
    with (
        room.init() as context,
        pytest.raises(FailedPreconditionError, match=r"refuses a presigned URL .*check of the storage"),
    ):
        store(context, CONTENT)
    assert (room.visible(), room.stored()) == ([], set())


@pytest.mark.integration
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: b"L" + data[1:], "d/large has another content"),
        (lambda data: data[:-7], r"d/large has 999993 bytes instead of 1000000"),
    ],
    ids=["flipped", "truncated"],
)
def test_bytes_that_change_on_the_way_down_are_named_and_the_file_stays_good(
    room: StoreScenario, proxy: StoreProxy, damage: Callable[[bytes], bytes], problem: str
) -> None:
    with room.init() as context:
        checkpoint_id = store(context, CONTENT)
        proxy.behaviour = on("GET", "d/large", Disturbance(downwards=damage))
        with pytest.raises(DataLossError, match=f"{problem}; restore from another checkpoint"):
            holds(context, checkpoint_id, CONTENT)
        proxy.behaviour = on("GET", "d/large", Disturbance(cut=True), times=2)
        assert holds(context, checkpoint_id, CONTENT)


@pytest.mark.integration
def test_an_object_that_arrives_short_is_never_committed(room: StoreScenario, proxy: StoreProxy) -> None:
    proxy.behaviour = on("PUT", "d/large", Disturbance(upwards=lambda data: data[:-7]))
    with room.init() as context:
        with pytest.raises(FailedPreconditionError, match=r"d/large.* has 999993 bytes, not 1000000"):
            store(context, CONTENT)
        assert room.visible() == []
        wait_until(lambda: room.stored() == set(), what="the removal of what is incomplete")


@pytest.mark.integration
def test_an_object_that_changes_on_the_way_up_is_found_when_it_is_restored(
    room: StoreScenario, proxy: StoreProxy
) -> None:
    proxy.behaviour = on("PUT", "d/large", Disturbance(upwards=lambda data: b"L" + data[1:]))
    with room.init() as context:
        checkpoint_id = store(context, CONTENT)
        with pytest.raises(DataLossError, match="d/large has another content; restore from another"):
            holds(context, checkpoint_id, CONTENT)


@pytest.mark.integration
def test_a_store_that_is_busy_for_the_trial_and_for_the_service_is_waited_for(
    room: StoreScenario, proxy: StoreProxy
) -> None:
    busy = Disturbance(status=503, answer=b"<Error><Code>SlowDown</Code></Error>")
    left = [12]

    def mood(asked: ProxyRequest) -> Disturbance:
        left[0] -= 1
        return busy if left[0] > 0 else FINE

    with room.init() as context:
        proxy.behaviour = mood
        checkpoint_id = store(context, CONTENT)
        assert room.visible() == [checkpoint_id]
        left[0] = 6
        assert holds(context, checkpoint_id, CONTENT)


@pytest.mark.integration
def test_a_store_that_takes_and_says_nothing_is_away(
    server: S3Server, proxy: StoreProxy, tmp_path: Path
) -> None:
    links = DirectUrls(proxy.server, server.new_bucket())
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "small").write_bytes(b"s")
    proxy.behaviour = on("PUT", "small", Disturbance(silent=True), times=2)
    store = PresignedStore(links, outage_timeout=DEADLINE, timeout=0.3)
    entries = store.write(str(uuid.uuid4()), tmp_path / "source", ["small"])
    assert len(entries) == 1
    proxy.behaviour = on("PUT", "small", Disturbance(silent=True))
    store = PresignedStore(links, outage_timeout=1.0, timeout=0.3)
    with pytest.raises(UnavailableError, match=r"does not answer \(.*timed out.*\); try again"):
        store.write(str(uuid.uuid4()), tmp_path / "source", ["small"])
