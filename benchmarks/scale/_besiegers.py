"""Callers who ask a cluster for all that they may, as a program of its own: what they cost is not measured.

Run as ``python _besiegers.py ADDRESS URL TRIAL AUTHORITY SECONDS``, with tokens of users on stdin, one a
line. SIGTERM or the time ends it; then it prints how many calls of each kind came to an end, and by what.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.api.searcher.v1 import search_spec_pb2 as specs
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.calls.tls import ClientTls, aio_channel

FOLLOWERS, WATCHES, SUBMISSIONS, BODIES = 600, 2_000, 200, 12
_SUBMITTERS = 4
_CONNECTIONS = 8
"""Of each user."""
_PAUSE = 0.05
_CALL_SECONDS = 120
_CONFIG = """
name: siege
entrypoint:
  - python3
  - -c
  - |
    import time
    import resolute.core
    with resolute.core.init() as context:
        while not context.preempt.should_preempt():
            time.sleep(0.1)
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
searcher: {name: single, metric: loss, max_length: 100}
"""
_LARGE_CONFIGS = tuple(
    "hyperparameters:\n" + "".join(f"  h{number}: {number}\n" for number in range(count))
    for count in (55_000, 220_000)
)
"""As large as a config may be, and as large as a message may be."""
_LARGE_JSON = json.dumps(
    {"curves": [{"lengths": [1.0] * 1_500_000, "metrics": [0.5] * 1_500_000}]}, separators=(",", ":")
).encode()
"""12 MB, as long as a body may be, that no simulation takes."""
Attack = Callable[[], Awaitable[None]]


class Besiegers:
    """Makes the calls of all users.

    Args:
        address: ``host:port`` of gRPC.
        url: Of HTTP; empty for none.
        trial: Whose log is followed.
        tokens: Of users.
        tls: How gRPC is reached; None for a plain port.
    """

    def __init__(
        self, address: str, *, url: str, trial: str, tokens: Sequence[str], tls: ClientTls | None = None
    ) -> None:
        self._url = url
        self._trial = trial
        self._tokens = tokens
        self._channels = [
            aio_channel(address, tls=tls, options=(("grpc.use_local_subchannel_pool", 1),))
            for _ in range(_CONNECTIONS * len(tokens))
        ]
        self.ended: Counter[str] = Counter()

    async def attack(self, seconds: float) -> None:
        """Attacks for so many seconds."""
        attackers = [
            *(self._repeat("followers", self._follow, number) for number in range(FOLLOWERS)),
            *(self._repeat("watches", self._watch, number) for number in range(WATCHES)),
            *(self._submit(number) for number in range(_SUBMITTERS)),
            *(
                self._repeat("bodies", (self._check, self._simulate, self._post)[number % 3], number)
                for number in range(BODIES)
            ),
        ]
        await asyncio.wait([asyncio.create_task(each) for each in attackers], timeout=seconds)

    async def _repeat(self, kind: str, call: Callable[[int], Awaitable[None]], number: int) -> None:
        """Calls again and again; refusals are what the service owes such callers."""
        while True:
            try:
                await call(number)
                self.ended[kind] += 1
            except grpc.aio.AioRpcError as error:
                self._note(kind, error)
            except OSError:
                self.ended[f"{kind} with a broken connection"] += 1
            await asyncio.sleep(_PAUSE)

    def _note(self, kind: str, error: grpc.aio.AioRpcError) -> None:
        self.ended[f"{kind} with {error.code().name}: {(error.details() or '')[:80]}"] += 1

    async def _follow(self, number: int) -> None:
        """Follows a long log, and reads nothing of it."""
        wanted = logs.FollowLinesRequest()
        wanted.subscriptions.add(key="a").filter.trial_id = self._trial
        stub: Any = LogsServiceStub(self._channel(number))
        call = stub.FollowLines(wanted, metadata=self._who(number))
        await call.code()

    async def _watch(self, number: int) -> None:
        wanted = experiments.WatchExperimentsRequest()
        wanted.experiments.add(key="a").experiment.number = 1
        stub: Any = ExperimentsServiceStub(self._channel(number))
        async for _ in stub.WatchExperiments(wanted, metadata=self._who(number)):
            pass

    async def _submit(self, number: int) -> None:
        stub: Any = ExperimentsServiceStub(self._channel(number))
        for _ in range(SUBMISSIONS // _SUBMITTERS):
            request = experiments.CreateExperimentRequest(
                request_id=str(uuid.uuid4()), spec=experiments.ExperimentSpec(config_yaml=_CONFIG)
            )
            try:
                await stub.CreateExperiment(request, metadata=self._who(number), timeout=_CALL_SECONDS)
                self.ended["submissions"] += 1
            except grpc.aio.AioRpcError as error:
                self._note("submissions", error)

    async def _check(self, number: int) -> None:
        """Has large configs checked."""
        stub: Any = ExperimentsServiceStub(self._channel(number))
        request = experiments.ValidateConfigRequest(config_yaml=_LARGE_CONFIGS[number % 2])
        await stub.ValidateConfig(request, metadata=self._who(number), timeout=_CALL_SECONDS)

    async def _simulate(self, number: int) -> None:
        """Simulates for as long as the service allows."""
        method = specs.AdaptiveAshaMethod(
            max_length=2**40,
            max_trials=50_000,
            divisor=4.0,
            max_rungs=5,
            max_concurrent_trials=16,
            mode=specs.ADAPTIVE_MODE_STANDARD,
        )
        curve = searcher.SimulateSearchRequest.Curve(lengths=range(20_000), metrics=[0.5] * 20_000)
        request = searcher.SimulateSearchRequest(
            spec=specs.SearchSpec(metric="loss", smaller_is_better=True, adaptive_asha=method), curves=[curve]
        )
        stub: Any = SearcherServiceStub(self._channel(number))
        await stub.SimulateSearch(request, metadata=self._who(number), timeout=_CALL_SECONDS)

    async def _post(self, number: int) -> None:
        """Sends a large body by HTTP."""
        if not self._url:
            await self._check(number)
            return
        request = urllib.request.Request(
            f"{self._url}/resolute.api.searcher.v1.SearcherService/SimulateSearch",
            data=_LARGE_JSON,
            headers={"content-type": "application/json", **dict(self._who(number))},
        )
        await asyncio.to_thread(_send, request)

    def _channel(self, number: int) -> Any:
        return self._channels[number % len(self._channels)]

    def _who(self, number: int) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._tokens[number % len(self._tokens)]}"),)


def _send(request: urllib.request.Request) -> None:
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=_CALL_SECONDS) as answer:
        answer.read()


async def _main(address: str, url: str, trial: str, tls: ClientTls | None, seconds: str) -> None:
    besiegers = Besiegers(address, url=url, trial=trial, tokens=sys.stdin.read().split(), tls=tls)
    began = time.monotonic()
    attack = asyncio.create_task(besiegers.attack(float(seconds)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, attack.cancel)
    with suppress(asyncio.CancelledError):
        await attack
    ended = ", ".join(f"{count} {kind}" for kind, count in besiegers.ended.most_common())
    sys.stdout.write(f"calls that ended in {time.monotonic() - began:.0f} s: {ended}\n")
    sys.stdout.flush()
    os._exit(0)  # what hangs in threads does not matter


if __name__ == "__main__":
    _address, _url, _trial, _authority, _seconds = sys.argv[1:]
    _tls = ClientTls(authority=Path(_authority).read_bytes()) if _authority else None
    asyncio.run(_main(_address, _url, _trial, _tls, _seconds))
