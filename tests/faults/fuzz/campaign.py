"""Many odd calls against all services, by every way in: none may fail inside, and the process may not grow.

Run as ``make fuzz CALLS=20000``. A long campaign says how far it is, and goes on from there by ``FIRST=n``
with the same ``SEED``; parts with seeds of their own may run side by side. Calls come over gRPC, by the
gateway as Connect in JSON and binary and as gRPC-web, and as bytes that break the rules of HTTP/1.1 and
HTTP/2. A seed decides every call; the ids of the objects that the calls name are new in each run. A call
counts as having reached the domain when neither its token, nor its bounds, nor the reading of its fields
ended it. A call that failed inside is printed at once, with what the services logged meanwhile, and a
campaign that is ended prints what it has found.
"""

from __future__ import annotations

import resolute_serving.observability.core_log  # noqa: F401 - before gRPC is imported

# isort: split
import argparse
import asyncio
import logging
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
from faults.fuzz.bases import Bases
from faults.fuzz.mutations import corrupt, mutate, with_surrogates
from faults.fuzz.ways import Way, by_broken_http, by_broken_http2, by_connect, by_grpc, by_grpc_web
from faults.fuzz.world import Caller, World, make_world
from google.protobuf.descriptor import MethodDescriptor
from support.calls.contract_methods import methods, path
from support.databases.postgres import new_postgres
from support.passwords import make_hashes_cheap
from support.processes.clean_ending import end_cleanly
from support.services.gateway import gateway
from support.services.in_process import serving

from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.policy.service_accounts import EMBEDDED, may_call

CALLS = 20_000
_PARALLEL = 24
_CAUSE_LENGTH = 1_500
_LINE_LENGTH = 500
_LINES_KEPT = 60
_WORLD_CALLS = 1_500
"""Calls that share the objects of one world: some of them delete, kill or close these."""
_DEFECTS = frozenset({"INTERNAL", "UNKNOWN", "NO_ANSWER"})
_NOT_REACHED = frozenset(
    {
        "INVALID_ARGUMENT",
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "UNIMPLEMENTED",
        "OUT_OF_RANGE",
        *_DEFECTS,
    }
)
_WAYS = {"gRPC": 6, "Connect, JSON": 4, "Connect": 3, "gRPC-web": 3, "broken HTTP": 3, "broken HTTP/2": 1}
"""The ways of calls, and how often each is taken."""
_DESTRUCTIVE = ("Delete", "Kill", "Cancel", "Archive", "Revoke", "EndRun", "Abort", "Activate", "SetPassword")
_RARELY = 0.15
MOST_GROWTH_MIB = 160
"""Most memory that the process may gain between the first quarter of the calls and the last."""


@dataclass(frozen=True)
class Finding:
    """A call that failed inside a service.

    Attributes:
        number: Which call; with the seed it repeats it.
        method: Full name of the call.
        what: The paths of the fields that were changed.
        detail: Status and message.
        logged: What the services logged while it was made, also of the calls beside it.
    """

    number: int
    method: str
    what: str
    detail: str
    logged: str

    def __str__(self) -> str:
        return f"call {self.number} {self.method} ({self.what}): {self.detail[:500]}\n{self.logged}".rstrip()


@dataclass
class Report:
    """What came of a campaign."""

    seed: int
    codes: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    """Resident MiB after each world."""
    ways: Counter[str] = field(default_factory=Counter)
    tracebacks: list[str] = field(default_factory=list)
    """What any part of the process logged with a traceback."""
    latest: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=_LINES_KEPT))
    """What was logged last, and when."""

    @property
    def share(self) -> float:
        """The share of calls that reached the domain."""
        return sum(self.reached.values()) / max(1, sum(self.made.values()))

    @property
    def growth(self) -> int:
        """MiB gained between the first quarter of the calls and the last."""
        first = len(self.memory) // 4
        return max(self.memory[-1] - self.memory[first], 0) if len(self.memory) > 3 else 0

    def note_line(self, text: str, *, traceback: str = "") -> None:
        """Keeps what was logged; a traceback is printed at once too."""
        if traceback:
            self.tracebacks.append(traceback[-_CAUSE_LENGTH:])
            _say(f"logged: {text[:_LINE_LENGTH]}\n{self.tracebacks[-1]}")
        self.latest.append((time.monotonic(), f"{text[:_LINE_LENGTH]} {traceback[-_CAUSE_LENGTH:]}".strip()))

    def note_failure(self, finding: Finding) -> None:
        """Keeps a call that failed inside, and prints it."""
        self.findings.append(finding)
        _say(str(finding))

    def logged_since(self, began: float) -> str:
        """What was logged since a moment."""
        return "\n".join(f"  {text}" for moment, text in self.latest if moment >= began)


class Campaign:
    """Makes the calls.

    Args:
        seed: Decides them.
        only: Part of the names of the methods to call; empty for all.
    """

    def __init__(self, seed: int, *, only: str = "") -> None:
        self._seed = seed
        self._methods = [method for method in methods() if only in path(method)]
        weights = [_RARELY if method.name.startswith(_DESTRUCTIVE) else 1.0 for method in self._methods]
        self._weights = weights
        self.report = Report(seed)

    async def run(self, folder: Path, *, calls: int, first: int = 0, database_url: str = "") -> Report:
        """Serves all services and makes calls.

        Args:
            folder: Where databases and checkpoints lie.
            calls: How many.
            first: How many of them are left out, because they were made before.
            database_url: PostgreSQL for all services; SQLite files in the folder by default.
        """
        with collected_lines(self.report), pytest.MonkeyPatch.context() as patch:
            make_hashes_cheap(patch)
            async with (
                serving(BLUEPRINTS, folder, database_url=database_url) as running,
                gateway(running.address) as http,
            ):
                caller = Caller(running)
                ways = _ways(caller, running.address, http.port)
                try:
                    for begin in range(first - first % _WORLD_CALLS, calls, _WORLD_CALLS):
                        world = await make_world(caller, folder, random.Random(f"{self._seed}/world/{begin}"))
                        numbers = iter(range(begin, min(begin + _WORLD_CALLS, calls)))
                        await asyncio.gather(
                            *(self._work(caller, ways, world, numbers) for _ in range(_PARALLEL))
                        )
                        self.report.memory.append(psutil.Process().memory_info().rss >> 20)
                        _say_how_far(self.report, begin + _WORLD_CALLS)
                finally:
                    await caller.channel.close()
                    end_processes(folder)
        return self.report

    async def _work(
        self, caller: Caller, ways: Mapping[str, Way], world: World, numbers: Iterator[int]
    ) -> None:
        for number in numbers:
            await self._call(caller, ways, world, number)

    async def _call(self, caller: Caller, ways: Mapping[str, Way], world: World, number: int) -> None:
        rng = random.Random(f"{self._seed}/{number}")
        (method,) = rng.choices(self._methods, self._weights)
        request = Bases(world, rng).request(method)
        changed = [mutate(request, rng) for _ in range(rng.choice((0, 0, 1, 1, 1, 2)))]
        data = with_surrogates(request.SerializeToString())
        if rng.random() < 0.02:
            data = corrupt(data, rng)
            changed.append("corrupt bytes")
        (way,) = rng.choices(list(ways), list(_WAYS.values()))
        began = time.monotonic()
        code, detail = await ways[way](method, data, _token(caller, world, method, rng), rng)
        name = path(method)
        self.report.codes[code] += 1
        self.report.ways[way] += 1
        if not way.startswith("broken"):
            self.report.made[name] += 1
            self.report.reached[name] += code not in _NOT_REACHED and not code.startswith("HTTP_")
        if code in _DEFECTS or code == "HTTP_500":
            what = ", ".join(changed) or "nothing"
            took = f"{code} after {time.monotonic() - began:.1f} s: {detail}"
            logged = self.report.logged_since(began)
            self.report.note_failure(Finding(number, name, f"{way}, {what}", took, logged))


def _say_how_far(report: Report, calls: int) -> None:
    inside, logged = len(report.findings), len(report.tracebacks)
    taken = f"{time.process_time():.0f} s of a processor"
    _say(f"{calls} calls, {taken}, {inside} failed inside, {logged} tracebacks")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _ways(caller: Caller, address: str, port: int) -> Mapping[str, Way]:
    return dict(
        zip(
            _WAYS,
            (
                by_grpc(caller.channel),
                by_connect(port, in_json=True),
                by_connect(port, in_json=False),
                by_grpc_web(port),
                by_broken_http(port),
                by_broken_http2(address),
            ),
            strict=True,
        )
    )


def _token(caller: Caller, world: World, method: MethodDescriptor, rng: random.Random) -> str:
    """A token of a caller that the table lets through."""
    rule = PERMISSIONS[path(method)]
    tokens = []
    if rule.user:
        tokens.append(caller.admin)
    if rule.trial is not None:
        tokens.append(caller.trial(world.run))
    if may_call(EMBEDDED, path(method)):
        tokens.append(caller.service)
    return rng.choice(tokens) if tokens else caller.admin


@contextmanager
def collected_lines(report: Report) -> Iterator[None]:
    """Keeps every traceback and the latest lines; logs nothing."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            traceback = logging.Formatter().format(record) if record.exc_info else ""
            report.note_line(f"{record.levelname} {record.name}: {record.getMessage()}", traceback=traceback)

    def collect(_: Any, level: str, event: Any) -> str:
        fields = dict(event)
        traceback = ""
        if fields.get("exc_info"):
            traceback = str(structlog.processors.format_exc_info(None, "", fields).pop("exception", ""))
        report.note_line(f"{level} {fields}", traceback=traceback)
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[collect], cache_logger_on_first_use=False)
    handler = Lines()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        structlog.configure(**before)


def end_processes(folder: Path) -> None:
    """Ends what trials were started: they outlive the services on purpose."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any(str(folder) in word for word in (*process.cmdline(), process.cwd())):
                process.kill()


def describe(report: Report) -> str:
    """Says what came of a campaign, the defects first."""
    lines = [str(finding) for finding in report.findings]
    weakest = sorted(report.made, key=lambda name: report.reached[name] / report.made[name])[:15]
    lines += [f"reached {report.reached[name]}/{report.made[name]} {name}" for name in weakest]
    lines += [f"logged: {text}" for text in dict.fromkeys(report.tracebacks)][:10]
    ways = ", ".join(f"{way} {count}" for way, count in report.ways.most_common())
    lines.append(f"ways: {ways}")
    codes = ", ".join(f"{code} {count}" for code, count in report.codes.most_common())
    lines.append(f"codes: {codes}")
    lines.append(f"resident MiB after each world: {report.memory}")
    lines.append(
        f"seed {report.seed}: {report.codes.total()} calls, {report.share:.0%} reached the domain, "
        f"{len(report.findings)} failed inside, {len(report.tracebacks)} tracebacks, "
        f"{report.growth} MiB gained"
    )
    return "\n".join(lines)


def main() -> None:
    """Runs one campaign and exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--first", type=int, default=0, help="how many of them were made before")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--only", default="", help="part of the names of the methods to call")
    parser.add_argument("--postgresql", action="store_true", help="on PostgreSQL in place of SQLite")
    options = parser.parse_args()
    _say(f"seed {options.seed}")
    end_cleanly()
    os.environ.setdefault("RESOLUTE_SLOTS", "1")
    began = time.monotonic()
    database = new_postgres() if options.postgresql else nullcontext("")
    with tempfile.TemporaryDirectory(prefix="resolute-fuzz-") as folder, database as url:
        campaign = Campaign(options.seed, only=options.only)
        report = campaign.report
        try:
            asyncio.run(
                campaign.run(Path(folder), calls=options.calls, first=options.first, database_url=url)
            )
        finally:  # a long campaign that is ended has found what it has found
            _say(f"{describe(report)}\n{time.monotonic() - began:.0f} s")
    fine = (
        not (report.findings or report.tracebacks)
        and report.growth <= MOST_GROWTH_MIB
        and (options.only or report.share >= 0.5)
    )
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
