"""A server of gRPC's health checks in a process of its own, which a test may stop and kill."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from grpc_health.v1 import health, health_pb2_grpc


@contextmanager
def running(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens; it is killed at the end."""
    command = [sys.executable, "-m", "support.services.processes.health", str(port)]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"listens\n"
            yield process
        finally:
            process.kill()


async def serve(port: int) -> None:
    """Serves until it is killed. Streams take no threads: any number of them may wait."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print("listens", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
