"""A stand-in for a Determined master: serves a made-up cluster by the paths and messages of its releases."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from support.old_cluster import content as made_up
from support.old_cluster.content import Content

_REPORTS_A_RESULT = 500
_TOKEN = "a-token"
Query = dict[str, list[str]]


class _MissingError(Exception):
    """There is no such path in this release, or no such object."""


@dataclass
class OldMaster:
    """What is served, and how badly."""

    content: Content
    release: str = "0.38.1"
    fails_every: int = 0
    """Every so many answers are a 503 or are cut off in the middle; zero for none."""
    longest_page: int = 1000
    """Items of a page at most, however many are asked for."""
    heard: Callable[[str], object] = lambda _path: None
    """Is told of every path that is asked for."""
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def failing(self) -> int:
        """Which failure this answer is: 1 refuses it, 2 cuts it off, 0 lets it pass."""
        with self._lock:
            number = next(self._count)
        if not self.fails_every or number % self.fails_every:
            return 0
        return 1 + number // self.fails_every % 2

    def has(self, release: tuple[int, int]) -> bool:
        """Whether the release is at least another."""
        major, minor = self.release.split(".")[:2]
        return (int(major), int(minor)) >= release

    def answer(self, path: str, query: Query, body: dict[str, Any]) -> Any:
        """The message that a path gives."""
        for pattern, give in _ROUTES:
            found = re.fullmatch(pattern, path)
            if found:
                return give(_Call(self, query, body, unquote("".join(found.groups()))))
        raise _MissingError

    def stream(self, path: str, query: Query) -> Iterable[dict[str, Any]] | None:
        """The results of a path that gives a stream; None for every other."""
        log = re.fullmatch(r"/api/v1/trials/(\d+)/logs", path)
        if log:
            return self.content.log(int(log[1]))
        if path in _METRIC_PATHS and self.has((0, 23)):
            group = _METRIC_PATHS[path] or query["group"][0]
            return self._metrics([int(one) for one in query["trialIds"]], group)
        return None

    def _metrics(self, trials: Sequence[int], group: str) -> Iterator[dict[str, Any]]:
        reports = itertools.chain.from_iterable(self.content.reports(trial, group) for trial in trials)
        while some := list(itertools.islice(reports, _REPORTS_A_RESULT)):
            yield {"metrics": some}


@dataclass(frozen=True)
class _Call:
    """One call of a path."""

    old: OldMaster
    query: Query
    body: dict[str, Any]
    key: str
    """What the path names; empty for nothing."""

    @property
    def number(self) -> int:
        """The number that the path names."""
        return int(self.key)

    def page(self, items: Sequence[Any], field_name: str) -> dict[str, Any]:
        """The part of a list that is asked for."""
        offset = int(self.query.get("offset", ["0"])[0])
        limit = int(self.query.get("limit", ["100"])[0] or 100)
        most = min(limit if limit > 0 else len(items), self.old.longest_page)
        chosen = items[offset : offset + most]
        ends = {"startIndex": offset, "endIndex": offset + len(chosen)}
        pagination = {"offset": offset, "limit": limit, "total": len(items), **ends}
        return {field_name: chosen, "pagination": pagination}


_METRIC_PATHS = {
    "/api/v1/trials/metrics/trial_metrics": "",
    "/api/v1/trials/metrics/training_metrics": "training",
    "/api/v1/trials/metrics/validation_metrics": "validation",
}


def _master(call: _Call) -> dict[str, Any]:
    return {
        "version": call.old.release,
        "masterId": "m",
        "clusterId": made_up.CLUSTER_ID,
        "clusterName": "",
        "rbacEnabled": call.old.content.rbac and call.old.has((0, 20)),
        "hasCustomLogo": False,
        "strictJobQueueControl": False,
    }


def _login(call: _Call) -> dict[str, Any]:
    if call.body.get("username") not in {"admin", "determined"}:
        raise PermissionError
    return {"token": _TOKEN, "user": made_up.USERS[0]}


def _experiments(call: _Call) -> dict[str, Any]:
    # One that has not ended comes last.
    return call.page(_Computed(call.old.content.experiments + 1, call.old.content.experiment), "experiments")


@dataclass(frozen=True)
class _Computed(Sequence[Any]):
    """Objects by number, made when they are asked for."""

    size: int
    make: Callable[[int], Any]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self.make(one + 1) for one in range(self.size)[place]]
        return self.make(range(self.size)[place] + 1)


def _experiment(call: _Call) -> dict[str, Any]:
    if call.number > call.old.content.experiments + 1:
        raise _MissingError
    told = call.old.content.experiment(call.number, whole=True)
    return {"experiment": told, "config": told["config"]}


def _trials(call: _Call) -> dict[str, Any]:
    if call.number > call.old.content.experiments:
        return call.page([], "trials")
    trials = [call.old.content.trial(one) for one in call.old.content.trials_of(call.number)]
    if not call.old.has((0, 31)):
        # The summary is optional, also in lists.
        trials = [{name: value for name, value in one.items() if name != "summaryMetrics"} for one in trials]
    return call.page(trials, "trials")


def _checkpoints(call: _Call) -> dict[str, Any]:
    trials = call.old.content.trials_of(call.number)
    every = [one for trial in trials for one in call.old.content.checkpoints_of(trial)]
    return call.page(sorted(every, key=lambda one: str(one["uuid"])), "checkpoints")


def _trial_checkpoints(call: _Call) -> dict[str, Any]:
    return call.page(list(call.old.content.checkpoints_of(call.number)), "checkpoints")


def _checkpoint(call: _Call) -> dict[str, Any]:
    trials = range(1, call.old.content.experiments * call.old.content.trials + 1)
    every = (one for trial in trials for one in call.old.content.checkpoints_of(trial))
    found = next((one for one in every if one["uuid"] == call.key), None)
    if found is None:
        raise _MissingError
    return {"checkpoint": found}


def _workloads(call: _Call) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for group, key in (("training", "avg_metrics"), ("validation", "validation_metrics")):
        for report in call.old.content.reports(call.number, group):
            workload = {
                "totalBatches": report["totalBatches"],
                "endTime": report["endTime"],
                "numInputs": 0,
                "state": "STATE_COMPLETED",
                "metrics": {"avgMetrics": report["metrics"][key]},
            }
            found.append({group: workload})
    return call.page(sorted(found, key=lambda one: next(iter(one.values()))["totalBatches"]), "workloads")


def _projects(call: _Call) -> dict[str, Any]:
    counts = {"numExperiments": 0, "numActiveExperiments": 0, "numRuns": 0, "key": "K"}
    fixed = {**counts, "state": "WORKSPACE_STATE_UNSPECIFIED", "errorMessage": "", "immutable": False}
    own = {**fixed, "notes": [], "username": "admin", "userId": 1}
    return call.page([own | one for one in made_up.PROJECTS if one["workspaceId"] == call.number], "projects")


def _workspaces(call: _Call) -> dict[str, Any]:
    fixed = {"numExperiments": 0, "numProjects": 1, "pinned": False, "immutable": False}
    own = {**fixed, "state": "WORKSPACE_STATE_UNSPECIFIED", "errorMessage": ""}
    return call.page([own | one for one in made_up.WORKSPACES], "workspaces")


def _policies(call: _Call, workspace: int) -> dict[str, Any]:
    if not call.old.has((0, 36)):
        raise _MissingError
    return {"configPolicies": made_up.POLICIES.get(workspace) or None}


def _no_tasks(name: str) -> Callable[[_Call], dict[str, Any]]:
    return lambda call: call.page([], name)


_ROUTES: Sequence[tuple[str, Callable[..., Any]]] = (
    (r"/api/v1/master", _master),
    (r"/api/v1/auth/login", _login),
    (r"/api/v1/auth/user", lambda _: {"user": made_up.USERS[0]}),
    (r"/api/v1/me", lambda _: {"user": made_up.USERS[0]}),
    (r"/api/v1/users", lambda call: call.page(made_up.USERS, "users")),
    (
        r"/api/v1/groups/search",
        lambda call: {
            "groups": [{"group": one, "numMembers": 2} for one in made_up.GROUPS][
                call.body.get("offset", 0) :
            ]
        },
    ),
    (r"/api/v1/groups/(\d+)", lambda _: {"group": made_up.GROUPS[0]}),
    (
        r"/api/v1/roles/search/by-user/(\d+)",
        lambda call: {"roles": made_up.roles_of(call.number)},
    ),
    (r"/api/v1/roles/search/by-group/(\d+)", lambda _: made_up.roles_of_group()),
    (r"/api/v1/workspaces", _workspaces),
    (r"/api/v1/workspaces/(\d+)/projects", _projects),
    (r"/api/v1/templates", lambda call: call.page(made_up.TEMPLATES, "templates")),
    (r"/api/v1/webhooks", lambda _: {"webhooks": made_up.WEBHOOKS}),
    (r"/api/v1/notebooks", lambda call: call.page(made_up.NOTEBOOKS, "notebooks")),
    *((rf"/api/v1/{name}", _no_tasks(name)) for name in ("shells", "commands", "tensorboards")),
    (r"/api/v1/config-policies/global/NTSC", lambda call: _policies(call, 0)),
    (r"/api/v1/config-policies/global/EXPERIMENT", lambda call: _policies(call, 0)),
    (
        r"/api/v1/config-policies/workspaces/(\d+)/EXPERIMENT",
        lambda call: _policies(call, call.number),
    ),
    (r"/api/v1/experiments", _experiments),
    (r"/api/v1/experiments/(\d+)", _experiment),
    (r"/api/v1/experiments/(\d+)/trials", _trials),
    (r"/api/v1/experiments/(\d+)/checkpoints", _checkpoints),
    (
        r"/api/v1/experiments/(\d+)/model_def",
        lambda _: {"b64Tgz": made_up.model_definition()},
    ),
    (r"/api/v1/checkpoints/([^/]+)", _checkpoint),
    (r"/api/v1/trials/(\d+)", lambda call: {"trial": call.old.content.trial(call.number)}),
    (r"/api/v1/trials/(\d+)/workloads", _workloads),
    (r"/api/v1/trials/(\d+)/checkpoints", _trial_checkpoints),
    (r"/api/v1/models", lambda call: call.page(call.old.content.models(), "models")),
    (
        r"/api/v1/models/([^/]+)/versions",
        lambda call: {
            **call.page(call.old.content.versions(), "modelVersions"),
            "model": call.old.content.models()[0],
        },
    ),
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    old: OldMaster

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"))

    def _serve(self, body: dict[str, Any]) -> None:
        parts = urlsplit(self.path)
        self.old.heard(parts.path)
        query, failure = parse_qs(parts.query), self.old.failing()
        public = parts.path in {"/api/v1/auth/login", "/api/v1/master"}
        if failure == 1:
            return self._send(503, {"error": "busy"})
        if not public and self.headers.get("Authorization") != f"Bearer {_TOKEN}":
            return self._send(401, {"error": "unauthenticated"})
        results = self.old.stream(parts.path, query)
        if results is not None:
            return self._stream(results, cut=failure == 2)
        try:
            self._send(200, self.old.answer(parts.path, query, body), cut=failure == 2)
        except _MissingError:
            self._send(404, {"error": "not found"})
        except PermissionError:
            self._send(401, {"error": "invalid credentials"})

    def _send(self, status: int, message: Any, *, cut: bool = False) -> None:
        data = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.wfile.flush()
        self.close_connection = cut

    def _stream(self, results: Iterable[dict[str, Any]], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for result in results:
            data = json.dumps({"result": result}).encode() + b"\n"
            self.wfile.write(b"%x\r\n" % len(data))
            if cut:
                self.wfile.write(data[: len(data) // 2])
                self.wfile.flush()
                self.close_connection = True
                return
            self.wfile.write(data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def serving_old_master(old: OldMaster) -> Iterator[str]:
    """Serves a master on a loopback port; gives its address."""
    handler = type("Handler", (_Handler,), {"old": old})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="old-master")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
