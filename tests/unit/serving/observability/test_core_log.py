"""What gRPC's core writes to the logs of services about frames that strangers send: nothing."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

import resolute_serving.observability.core_log  # noqa: F401 - what is tried

_SERVER = r"""
import asyncio, socket, struct
import {first}
import grpc

def frame(kind, flags, stream, content):
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content

def send(port):
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        goodbye = struct.pack(">II", 0, 11) + b"\x1b]0;owned\x07"
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        connection.sendall(preface + frame(4, 0, 0, b"") + frame(7, 0, 0, goodbye))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass

async def main():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await asyncio.to_thread(send, port)
    await server.stop(0)

asyncio.run(main())
"""
_FIRST = """
import os, runpy, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            os._exit(0 if os.environ.get("GRPC_VERBOSITY") == "NONE" else 1)
sys.meta_path.insert(0, Finder())
runpy.run_module({package!r}, run_name="__main__")
"""


def run(program: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a program without what this process has set."""
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("first", "written"), [("resolute_serving.observability.core_log", False), ("sys", True)]
)
def test_frames_of_strangers_leave_nothing_in_the_log(first: str, written: bool) -> None:
    server = run(_SERVER.replace("{first}", first))
    assert server.returncode == 0, server.stderr
    assert (b"owned" in server.stderr) == written
    assert bool(server.stderr) == written


@pytest.mark.parametrize(
    "service",
    ["checkpoints", "experiments", "gateway", "logs", "metrics", "preemption", "searcher"],
)
def test_each_program_of_a_service_says_so_before_grpc_is_imported(service: str) -> None:
    assert run(_FIRST.format(package=f"resolute_{service}")).returncode == 0


def test_a_client_that_goes_away_while_it_is_answered_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("grpc._cython.cygrpc")
    log.error("ExecuteBatchError raised in core by servicer method [%s]", "/a.B/C")  # as gRPC writes it
    assert not caplog.records
    log.error("Unexpected [%s] raised by servicer method [%s]", "ValueError", "/a.B/C")
    assert len(caplog.records) == 1
