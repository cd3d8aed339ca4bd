"""The searcher in a process of its own, as it is deployed: started, killed, started again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.ports import free_port
from support.services.searcher import Player, adaptive, run
from support.services.stand_ins.platform_stub import PlatformStub
from unit.searcher.harness import drive_in_order

from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import ConflictError, NotFoundError, UnavailableError
from resolute_searcher.state_machine.search import Search
from resolute_searcher.wire.spec import spec_from
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.server.channels.peers import Peers

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
CLUSTER = str(uuid.uuid4())
ASKED = adaptive(max_trials=12, max_concurrent_trials=4)


def environment(home: Path, *, port: int = 0) -> dict[str, str]:
    return {
        **os.environ,
        "RESOLUTE_CLUSTER_ID": CLUSTER,
        "RESOLUTE_DATA_DIR": str(home),
        "RESOLUTE_SIGNING_KEY_FILE": str(home / "key.pem"),
        "RESOLUTE_PORT": str(port),
        "RESOLUTE_LOG_LEVEL": "WARNING",
    }


def upgrade(home: Path) -> None:
    command = [sys.executable, "-m", "resolute_searcher", "--upgrade"]
    subprocess.run(command, env=environment(home), check=True, timeout=60)


@contextmanager
def process(home: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """A searcher that listens; it is killed when the block ends."""
    server = subprocess.Popen(
        [sys.executable, "-m", "resolute_searcher"],
        env=environment(home, port=port),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == f"searcher listens on 127.0.0.1:{port}\n"
        yield server
    finally:
        server.kill()
        server.wait()
        if server.stdout:
            server.stdout.close()


def client(home: Path, port: int) -> tuple[Any, Peers]:
    signer = TokenSigner(load_or_create_key(home / "key.pem"), cluster_id=CLUSTER, clock=SYSTEM_CLOCK)
    stub = PlatformStub(SearcherServiceStub, signer=signer, address=f"127.0.0.1:{port}")
    return stub, stub.peers


class Patient:
    """A client that repeats every call until it is answered.

    Args:
        stub: The client.
    """

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        if name == "FollowActions":
            return self._stub.FollowActions  # type: ignore[no-any-return]

        async def call(request: Any) -> Any:
            return await self.insist(lambda: getattr(self._stub, name)(request))

        return call

    async def insist(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await attempt()
            except (UnavailableError, ConflictError):
                await asyncio.sleep(0.02)


class PatientPlayer(Player):
    """A player whose reading of actions is repeated, too, and that tells its progress."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._worked = 0
        self._progressed = asyncio.Condition()

    async def has_worked(self, operations: int) -> None:
        """Waits until some operations are under way or done."""
        async with self._progressed:
            await self._progressed.wait_for(lambda: self._worked >= operations)

    async def _work(self, trial_id: str) -> None:
        async with self._progressed:
            self._worked += 1
            self._progressed.notify_all()
        await super()._work(trial_id)

    async def actions(self, after: int) -> list[action_pb.Action]:
        patient: Any = self.client
        read = super().actions
        actions: list[action_pb.Action] = await patient.insist(lambda: read(after))
        return actions


@pytest.mark.integration
def test_a_searcher_that_is_killed_again_and_again_tells_one_story(tmp_path: Path) -> None:
    def metric(trial: int) -> float:
        return float(7 * trial % 17)

    async def scenario() -> None:
        port = free_port()
        stub, peers = client(tmp_path, port)
        patient: Any = Patient(stub)
        player = PatientPlayer(patient, SEARCH, metric)

        async def play() -> None:
            await patient.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=ASKED))
            await player.play()

        playing = asyncio.create_task(play())
        choice = random.Random(4)
        for kill in range(1, 4):
            with process(tmp_path, port) as server:
                await player.has_worked(3 * kill)
                await asyncio.sleep(choice.uniform(0.0, 0.02))
                server.send_signal(signal.SIGKILL)
            # Anyone who repeats the calls that were cut off, the channel or the client: there is more to do.
            assert not playing.done()
        with process(tmp_path, port):
            await playing
            replayed = await stub.ReplaySearch(service_pb.ReplaySearchRequest(search_id=SEARCH))
            assert (replayed.equal, replayed.detail) == (True, "")
            found = (await stub.GetSearch(service_pb.GetSearchRequest(search_id=SEARCH))).search.status
            assert found.state == search_pb.SEARCH_STATE_SHUT_DOWN
        await peers.close()
        expected = drive_in_order(Search(spec_from(ASKED)), metric)
        assert player.played.in_order() == expected.in_order()

    upgrade(tmp_path)
    run(scenario, deadline=60.0)


@pytest.mark.integration
def test_a_searcher_ends_when_it_is_told_and_wants_its_schema(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "resolute_searcher"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 1
    assert "run `resolute db upgrade`" in refused.stderr
    upgrade(tmp_path)
    port = free_port()

    async def call() -> None:
        stub, peers = client(tmp_path, port)
        with pytest.raises(NotFoundError):
            await stub.GetSearch(service_pb.GetSearchRequest(search_id=SEARCH))
        await peers.close()

    with process(tmp_path, port) as server:
        run(call)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=20) == 0
