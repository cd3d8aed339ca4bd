"""What the gateway costs beside a direct call.

    python benchmarks/gateway/beside_direct.py [--calls N] [--points N] [--streams N]

The metrics service and the gateway run in processes of their own. The same calls are made over gRPC and
through the gateway, in turns: one at a time, eight at a time, and a stream whose first message has a long
series. Then idle streams are held open. Exits 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import statistics
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.metrics.queries import NAMES, fill
from benchmarks.standalone import Standalone, say, seconds, standalone
from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub

LIMIT_TIME = 3.0
LIMIT_RATE = 1 / 3
LIMIT_STREAM = 2.0
LIMIT_STREAMS_MB = 100.0
_ROUNDS = 7
_CLIENTS = 8
_SERVICE = "/resolute.api.metrics.v1.MetricsService"


@contextmanager
def gateway(service: Standalone) -> Iterator[tuple[int, psutil.Process]]:
    """Runs the gateway alone; gives its port of HTTP and its process."""
    environment = {
        **os.environ,
        "RESOLUTE_CLUSTER_ID": "00000000-0000-4000-8000-000000000000",
        "RESOLUTE_METRICS_ADDRESS": service.address,
        "RESOLUTE_HTTP_PORT": "0",
        "RESOLUTE_LOG_LEVEL": "WARNING",
    }
    command = [sys.executable, "-m", "resolute_gateway"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().strip().rsplit(" ", 1)[-1]), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.communicate()


class HttpClient:
    """Makes calls in binary over one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {"Content-Type": "application/proto", "Authorization": f"Bearer {token}"}

    def unary(self, request: api.GetSeriesRequest) -> api.GetSeriesResponse:
        """Makes a call with one answer."""
        path = f"{_SERVICE}/GetSeries"
        self._connection.request("POST", path, request.SerializeToString(), self._headers)
        return api.GetSeriesResponse.FromString(self._connection.getresponse().read())

    def first_message(self, request: api.WatchSeriesRequest) -> api.WatchSeriesResponse:
        """Opens a stream, reads its first message, and closes the connection."""
        headers = {**self._headers, "Content-Type": "application/connect+proto"}
        self._connection.request("POST", f"{_SERVICE}/WatchSeries", _framed(request), headers)
        response = self._connection.getresponse()
        _, length = struct.unpack(">BI", response.read(5))
        message = api.WatchSeriesResponse.FromString(response.read(length))
        self._connection.close()
        return message


def _framed(request: api.WatchSeriesRequest) -> bytes:
    data = request.SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def rate(make: Callable[[], Callable[[], object]], calls: int) -> float:
    """Calls a second of several clients at a time."""
    clients = [make() for _ in range(_CLIENTS)]

    def all_of(call: Callable[[], object]) -> None:
        for _ in range(calls // _CLIENTS):
            call()

    def run() -> None:
        threads = [threading.Thread(target=all_of, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return calls / seconds(run)


def in_turns(one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """Medians of two measurements, made in turns so that both see the same machine."""
    found = [(one(), other()) for _ in range(_ROUNDS)]
    return statistics.median(a for a, _ in found), statistics.median(b for _, b in found)


async def hold_streams(port: int, token: str, request: bytes, count: int, process: psutil.Process) -> float:
    """MiB that the gateway gains with idle streams, each of which has had a message."""
    before = process.memory_info().rss
    head = (
        f"POST {_SERVICE}/WatchSeries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/connect+proto\r\nContent-Length: {len(request)}\r\n\r\n"
    )
    writers = []

    async def open_one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(head.encode() + request)
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)

    await asyncio.gather(*(open_one() for _ in range(count)))
    gained = (process.memory_info().rss - before) / 2**20
    for writer in writers:
        writer.close()
    return gained


@dataclass(frozen=True)
class Figures:
    """What was measured: without the gateway first."""

    one: tuple[float, float]
    """Seconds of one call."""
    rates: tuple[float, float]
    """Calls a second."""
    streams: tuple[float, float]
    """Seconds until a stream has given a long series."""

    def show(self, points: int) -> bool:
        """Prints them; returns whether a limit is missed."""
        time_ratio, rate_ratio = self.one[1] / self.one[0], self.rates[1] / self.rates[0]
        stream_ratio = self.streams[1] / self.streams[0]
        say(
            f"one call        {self.one[0] * 1000:6.2f} ms, {self.one[1] * 1000:6.2f} ms "
            f"through the gateway: {time_ratio:.2f} times as long (limit {LIMIT_TIME:g})"
        )
        say(
            f"calls a second  {self.rates[0]:6.0f}, {self.rates[1]:6.0f} through the gateway: "
            f"{rate_ratio:.2f} of the rate (limit {LIMIT_RATE:.2f})"
        )
        say(
            f"{points} points   {self.streams[0]:6.3f} s, {self.streams[1]:6.3f} s through the gateway: "
            f"{stream_ratio:.2f} times as long (limit {LIMIT_STREAM:g})"
        )
        return time_ratio > LIMIT_TIME or rate_ratio < LIMIT_RATE or stream_ratio > LIMIT_STREAM


def measure(service: Standalone, port: int, *, calls: int, points: int) -> Figures:
    """Makes the same calls directly and through the gateway, in turns."""
    token, series = service.user_token(), (service.run.trial_id, "training", NAMES[0])
    small, long = api.GetSeriesRequest(**_named(series), max_points=10), watch(series, points)
    with service.user_channel() as channel:
        stub = MetricsServiceStub(channel)
        assert HttpClient(port, token).unary(small) == stub.GetSeries(small)

        def direct() -> Callable[[], object]:
            # Threads share the channel, as those of a process do.
            return lambda: stub.GetSeries(small, timeout=60)

        def through() -> Callable[[], object]:
            mine = HttpClient(port, token)
            return lambda: mine.unary(small)

        def first_directly() -> None:
            stream = stub.WatchSeries(long)
            message = next(iter(stream))
            stream.cancel()
            assert len(message.steps) >= points // 2

        def repeated(call: Callable[[], object]) -> Callable[[], float]:
            return lambda: statistics.median(seconds(call) for _ in range(calls // 4))

        return Figures(
            one=in_turns(repeated(direct()), repeated(through())),
            rates=in_turns(lambda: rate(direct, calls), lambda: rate(through, calls)),
            streams=in_turns(
                lambda: seconds(first_directly),
                lambda: seconds(lambda: HttpClient(port, token).first_message(long)),
            ),
        )


def watch(series: tuple[str, str, str], max_points: int) -> api.WatchSeriesRequest:
    """Asks for one series of a trial, by trial, group and name."""
    one = api.WatchSeriesRequest.Subscription(key="a", **_named(series), max_points=max_points)
    return api.WatchSeriesRequest(subscriptions=[one])


def _named(series: tuple[str, str, str]) -> dict[str, Any]:
    return dict(zip(("trial_id", "group", "name"), series, strict=True))


def main() -> None:
    """Prints what was measured; fails when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    with standalone("metrics") as service, gateway(service) as (port, process):
        fill(service, options.points)
        figures = measure(service, port, calls=options.calls, points=options.points)
        idle = _framed(watch((service.run.trial_id, "no", "no"), 0))
        gained = asyncio.run(hold_streams(port, service.user_token(), idle, options.streams, process))
    missed = figures.show(options.points)
    say(f"{options.streams} idle streams {gained:6.1f} MiB (limit {LIMIT_STREAMS_MB:.0f})")
    if missed or gained > LIMIT_STREAMS_MB:
        sys.exit("a limit was missed")


if __name__ == "__main__":
    main()
