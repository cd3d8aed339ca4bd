"""A hub and those who come to it: members, and some who should not."""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import zmq

from resolute.core.distributed import CollectiveAuthError, CollectiveError
from resolute.core.distributed.group import hub_client
from resolute.core.distributed.group.handshake import Hello
from resolute.core.distributed.group.hub import Hub
from resolute.core.distributed.group.hub_client import HubClient
from resolute.core.distributed.group.membership import Membership
from resolute.core.distributed.group.parameters import GroupParameters
from resolute.core.distributed.transport.messages import Codec, Kind, Message, Op, pack_fields, unpack_fields
from resolute.core.distributed.transport.payload import dump, load

Context = zmq.Context[zmq.Socket[bytes]]


@dataclass
class House:
    """A hub for two members, the first of which is in this process."""

    context: Context = field(default_factory=Context)
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def open(self, *, key: bytes | None = None, job: str = "7.1", start_timeout: float = 10.0) -> str:
        hub = Hub(self.context, self.parameters(key=key, job=job), start_timeout=start_timeout)
        url = hub.bind("tcp://127.0.0.1:*")
        hub.bind("inproc://hub")
        hub.start("hub under test")
        self.opened.callback(hub.stop)
        return url

    def parameters(self, *, key: bytes | None = None, job: str = "7.1", size: int = 2) -> GroupParameters:
        return GroupParameters(Membership(range(size)), Codec(key), job)

    def member(self, url: str, index: int, **parameters: Any) -> HubClient:
        one = HubClient(self.context, url, self.parameters(**parameters), index=index)
        self.opened.callback(one.close)
        return one

    def stranger(self, url: str) -> "zmq.Socket[bytes]":
        socket = self.context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        self.opened.callback(socket.close)
        socket.connect(url)
        return socket


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(hub_client, "_REFUSAL_TIMEOUT", 0.2)
    house = House()
    yield house
    house.opened.close()
    house.context.term()


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What calls return, or raise, that are made at the same time."""
    outcomes: list[Any] = [None] * len(calls)

    def one(index: int) -> None:
        try:
            outcomes[index] = calls[index]()
        except CollectiveError as error:
            outcomes[index] = error

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return outcomes


def exchange(*members: HubClient) -> list[list[Any]]:
    """An allgather of the members' indices: what each gets from the others."""
    got = together(*(lambda m=m: m.run(Op.ALLGATHER, dump(m.index)) for m in members))
    return [[load(part.encoding, part.frames, private=False) for part in parts.values()] for parts in got]


def meet(house: House, url: str, **parameters: Any) -> tuple[HubClient, HubClient]:
    chief, worker = house.member("inproc://hub", 0, **parameters), house.member(url, 1, **parameters)
    assert together(lambda: chief.join(10), lambda: worker.join(10)) == [None, None]
    return chief, worker


@pytest.mark.parametrize("key", [None, b"secret"])
def test_members_exchange_their_parts(house: House, key: bytes | None) -> None:
    members = meet(house, house.open(key=key), key=key)

    assert exchange(*members) == [[1], [0]]


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        ({"key": b"secret"}, {}, "unsigned message"),
        ({"key": b"secret"}, {"key": b"other"}, "another RESOLUTE_COLLECTIVE_KEY"),
        ({}, {"key": b"secret"}, "RESOLUTE_COLLECTIVE_KEY is not set here"),
        ({"job": "7.1"}, {"job": "8.1"}, "belongs to run '8.1' and this is run '7.1'"),
        ({}, {"size": 3}, "expects 3 processes and this job has 2"),
    ],
)
def test_strangers_are_refused_with_a_reason(
    house: House, ours: dict[str, Any], theirs: dict[str, Any], reason: str
) -> None:
    worker = house.member(house.open(**ours), 1, **theirs)

    with pytest.raises(CollectiveError, match=f"does not accept rank 1: .*{reason}"):
        worker.join(10)


def test_a_second_process_of_the_same_rank_is_refused_and_does_no_harm(house: House) -> None:
    url = house.open()
    members = meet(house, url)

    with pytest.raises(CollectiveError, match="does not accept rank 1: this job has started"):
        house.member(url, 1).join(10)
    assert exchange(*members) == [[1], [0]]


def test_a_second_process_that_comes_before_the_start_is_refused(house: House) -> None:
    url = house.open()
    first, second, chief = house.member(url, 1), house.member(url, 1), house.member("inproc://hub", 0)

    def come(member: HubClient) -> None:
        try:
            member.join(30)
        except CollectiveError:
            chief.join(30)  # only now: so both were there before the start
            raise

    (refused,) = (error for error in together(lambda: come(first), lambda: come(second)) if error)

    assert "is here already" in str(refused)


def test_the_same_process_may_say_hello_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "_HELLO_INTERVAL", 0.01)
    url = house.open()
    worker = house.member(url, 1)
    chief = house.member("inproc://hub", 0)

    def late() -> None:
        time.sleep(0.1)
        chief.join(10)

    assert together(late, lambda: worker.join(10)) == [None, None]


@pytest.mark.parametrize("key", [None, b"secret"])
def test_messages_of_a_process_that_has_not_joined_change_nothing(house: House, key: bytes | None) -> None:
    url = house.open(key=key)
    members = meet(house, url, key=key)
    stranger = house.stranger(url)

    for frames in (
        [b"garbage"],
        [],
        [b"", b""],
        Codec(None).encode(Message(Kind.CONTRIBUTE, 1, members[0]._session, 1, Op.ALLGATHER)),
        Codec(None).encode(Message(Kind.BYE, 0, members[0]._session)),
        Codec(b"guess").encode(Message(Kind.BYE, 1, members[0]._session)),
    ):
        stranger.send_multipart(frames or [b""])
        assert stranger.poll(5000), "no answer"
        answer = Codec(None).decode(stranger.recv_multipart())
        assert answer.kind is Kind.REFUSE
    assert exchange(*members) == [[1], [0]]


def test_a_hello_with_another_payload_than_the_signed_one_is_refused(house: House) -> None:
    codec = Codec(b"secret")
    url = house.open(key=b"secret")
    stranger = house.stranger(url)
    hello = Hello(member=1, size=2, job="7.1", place="here", nonce="n")
    header, _ = codec.encode(Message(Kind.HELLO, 1, frames=pack_fields(hello.to_fields())))

    stranger.send_multipart([bytes(header), *pack_fields({**hello.to_fields(), "nonce": "other"})])  # type: ignore[arg-type]

    assert stranger.poll(5000)
    answer = Codec(None).decode(stranger.recv_multipart())
    assert "not the one that it signed" in unpack_fields(answer)["reason"]


def test_a_port_scanner_does_no_harm(house: House) -> None:
    import socket

    url = house.open()
    host, port = url.removeprefix("tcp://").split(":")
    for _ in range(5):
        with socket.create_connection((host, int(port))) as scanner:
            scanner.sendall(b"GET / HTTP/1.1\r\n\r\n")

    assert exchange(*meet(house, url)) == [[1], [0]]


class Impostor:
    """Listens where a member expects the hub, and answers every message with the same one."""

    def __init__(self, context: Context, answer: Callable[[Message], list[Any]]) -> None:
        self._router = context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 0)
        self.url = f"tcp://127.0.0.1:{self._router.bind_to_random_port('tcp://127.0.0.1')}"
        self._answer = answer
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="impostor")
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            if self._router.poll(20):
                identity, *frames = self._router.recv_multipart()
                message = Codec(b"secret").decode(frames)
                self._router.send_multipart([identity, *self._answer(message)])
        self._router.close()

    def close(self) -> None:
        self._end.set()
        self._thread.join()


def test_a_member_with_a_key_does_not_believe_an_unsigned_hub(house: House) -> None:
    ready = Message(Kind.READY, 0, secrets.token_bytes(8), frames=pack_fields({"nonce": "?"}))
    impostor = Impostor(house.context, lambda _: Codec(None).encode(ready))
    house.opened.callback(impostor.close)

    with pytest.raises(CollectiveAuthError, match="unsigned message"):
        house.member(impostor.url, 1, key=b"secret").join(5)


def test_a_recording_of_another_start_is_not_believed(house: House) -> None:
    ready = Message(Kind.READY, 0, secrets.token_bytes(8), frames=pack_fields({"nonce": "of another start"}))
    impostor = Impostor(house.context, lambda _: Codec(b"secret").encode(ready))
    house.opened.callback(impostor.close)

    with pytest.raises(CollectiveError, match="rank 0 does not answer"):
        house.member(impostor.url, 1, key=b"secret").join(0.5)


def test_a_hub_that_fails_tells_its_members(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    chief, worker = meet(house, house.open())

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError("out of memory")

    monkeypatch.setattr("resolute.core.distributed.group.collectives.PendingCollectives.contribute", fail)
    outcomes = together(lambda: chief.run(Op.GATHER, dump(0)), lambda: worker.run(Op.GATHER, dump(1)))

    for error in outcomes:
        assert isinstance(error, CollectiveError)
        assert "cannot serve the collectives: MemoryError" in str(error)
