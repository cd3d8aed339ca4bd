"""One question to a metadata server, and how long its answer may take."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import count

import pytest
from support.clocks import ManualClock
from support.daemons.metadata_server import metadata_server

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_launch.machine.probe import MetadataProbe


def probe(url: str, *, status: int = 200, contains: str = "", timeout: float = 5.0) -> MetadataProbe:
    return MetadataProbe(url=url, headers={}, status=status, contains=contains, interval=1.0, timeout=timeout)


@pytest.mark.parametrize(
    ("status", "body", "asked", "goes_away"),
    [
        (200, "", probe("", contains=""), True),
        (404, "", probe("", contains=""), False),
        (302, "", probe("", contains=""), False),  # a redirect is an answer like any other
        (302, "", probe("", status=302), True),
        (200, '{"Events": [{"EventType": "Preempt"}]}', probe("", contains='"Preempt"'), True),
        (200, '{"Events": []}', probe("", contains='"Preempt"'), False),
        (404, "Preempt", probe("", contains="Preempt"), False),
        (200, "." * (64 << 10) + "Preempt", probe("", contains="Preempt"), False),  # beyond what is read
    ],
)
def test_what_an_answer_means(status: int, body: str, asked: MetadataProbe, goes_away: bool) -> None:
    with metadata_server() as machine:
        machine.status, machine.body = status, body
        question = probe(machine.url, status=asked.status, contains=asked.contains)
        assert question.ask(clock=SYSTEM_CLOCK) is goes_away
        assert len(machine.requests) == 1


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    seconds: Callable[[], float] = count(0.0, 1.0).__next__
    monkeypatch.setattr(clock, "monotonic", seconds)
    with metadata_server() as machine:
        machine.status, machine.drips = 200, True
        with pytest.raises(TimeoutError, match="takes too long"):
            probe(machine.url, contains="Preempt").ask(clock=clock)


def test_who_takes_the_call_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TimeoutError):
            probe(f"http://127.0.0.1:{port}/", timeout=0.1).ask(clock=SYSTEM_CLOCK)


@pytest.mark.parametrize("resources", [{}, {"preemptible": None}, {"preemptible": {"enabled": True}}])
def test_configs_without_one_have_nothing_asked(resources: dict[str, object]) -> None:
    assert MetadataProbe.of({"resources": resources}) is None
    assert MetadataProbe.of({}) is None
