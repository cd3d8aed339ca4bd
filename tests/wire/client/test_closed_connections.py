"""Calls after their connection was closed, in a process of their own: grpcio would end it by SIGSEGV."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.ports import free_port
from support.services.processes import health as health_process

AFTER = """
import sys
from grpc_health.v1 import health_pb2, health_pb2_grpc
from resolute.errors import ClosedConnectionError
from resolute.rpc.channel import open_channel

request = health_pb2.HealthCheckRequest()
channel = open_channel(sys.argv[1])
used, unused = health_pb2_grpc.HealthStub(channel), health_pb2_grpc.HealthStub(channel)
used.Check(request)
next(used.Watch(request))
channel.close()
late = health_pb2_grpc.HealthStub(channel)
for stub in (used, unused, late):
    for call in (lambda: stub.Check(request), lambda: next(stub.Watch(request))):
        try:
            call()
        except ClosedConnectionError as refused:
            print(refused)
channel.close()
"""
MEANWHILE = """
import sys, threading
from grpc_health.v1 import health_pb2, health_pb2_grpc
from resolute.rpc.channel import open_channel

request = health_pb2.HealthCheckRequest()

def call(channel, began, ends):
    try:
        while True:
            stub = health_pb2_grpc.HealthStub(channel)
            stub.Check(request)
            stream = stub.Watch(request)
            next(stream)
            stream.cancel()
            began.set()
    except Exception as failure:
        ends.append(type(failure).__name__)
    finally:
        began.set()

for _ in range(8):
    channel, began, ends = open_channel(sys.argv[1]), threading.Event(), []
    threads = [threading.Thread(target=call, args=(channel, began, ends)) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.wait()
    channel.close()
    for thread in threads:
        thread.join()
    print(*ends)
"""
SECONDS = 240.0


def outcome(script: str) -> list[str]:
    """What a script prints that calls a server; it must end by itself."""
    port = free_port()
    with health_process.running(port):
        done = subprocess.run(
            [sys.executable, "-c", script, f"127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.timeout(300)
def test_calls_on_a_closed_connection_are_refused() -> None:
    refusals = outcome(AFTER)
    assert len(refusals) == 6, "of each stub, a call and a stream"
    assert all("was closed by this process" in refusal for refusal in refusals)


@pytest.mark.timeout(300)
def test_a_close_while_others_call_ends_their_calls_and_not_the_process() -> None:
    ends = [set(line.split()) for line in outcome(MEANWHILE)]
    assert len(ends) == 8
    assert set.union(*ends) <= {"ClosedConnectionError", "UnavailableError", "DeadlineError", "ValueError"}
