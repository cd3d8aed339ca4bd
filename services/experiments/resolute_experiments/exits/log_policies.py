"""Applies log policies to the lines of an ended run.

The logs service searches with RE2. It has the lines of every rank, even of a run whose supervisor was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs_pb2
from resolute.errors import InvalidArgumentError
from resolute_experiments.clients import Clients
from resolute_experiments.store.runs import Container, Run

_DEADLINE = 30.0
_SHOWN = 120
_LINES = 50
"""Lines that are asked for at once."""
_OF_CONFIG = "log_policies"
"""What lines have that print a config."""
_MOST_OF_CONFIG = 1000
"""So many of them are passed over before a search ends without a match."""
_log = structlog.get_logger("policies")


@dataclass(frozen=True, kw_only=True)
class LogPolicyResult:
    """The consequences for the trial."""

    cancels_retries: bool = False
    """Whether a failure of this run is its last."""
    excluded_nodes: frozenset[int] = frozenset()
    """Nodes that the trial must not use again."""
    notes: tuple[str, ...] = ()
    """What each policy that matched did, for people."""


async def evaluate_log_policies(
    config: Mapping[str, Any],
    run: Run,
    containers: Sequence[Container],
    clients: Clients,
    *,
    failed: bool,
) -> LogPolicyResult:
    """Searches the lines of a run for the patterns of its experiment's policies.

    Args:
        config: The experiment's config.
        run: A run that has ended.
        containers: All of its containers.
        clients: Reach the logs service.
        failed: Whether the run failed. Policies that are there by default label failures only, so that runs
            that succeed cost no search.

    Raises:
        UnavailableError: The logs service does not answer; to be repeated.
    """
    cancels, excluded, notes = False, set[int](), list[str]()
    for policy in config.get("log_policies", ()):
        if policy.get("pattern") is None or (not failed and _is_default(policy)):
            continue
        action = _action(policy)
        by_container = action == "exclude_node" and len(containers) > 1
        for ranks, nodes in _places(containers, apart=by_container):
            line = await _first_match(policy["pattern"], run, ranks, clients)
            if line is None:
                continue
            cancels |= action == "cancel_retries"
            excluded |= nodes if action == "exclude_node" else set()
            notes.append(_note(policy, nodes, line))
    return LogPolicyResult(cancels_retries=cancels, excluded_nodes=frozenset(excluded), notes=tuple(notes))


def _action(policy: Mapping[str, Any]) -> str | None:
    action: Mapping[str, str] | None = policy.get("action")
    return action["type"] if action is not None else None


def _is_default(policy: Mapping[str, Any]) -> bool:
    # Here: the models of configs are not loaded by the start of a cluster.
    from resolute_config.sections.log_policies import DEFAULT_LOG_POLICIES

    given = {field: value for field, value in policy.items() if value is not None}
    return given in DEFAULT_LOG_POLICIES


def _places(containers: Sequence[Container], *, apart: bool) -> Iterator[tuple[list[str], set[int]]]:
    """The containers whose lines are searched together, as lines name them, and their nodes."""
    if not apart:
        yield [], {container.node for container in containers}
        return
    for container in containers:
        yield [str(container.container_rank)], {container.node}


async def _first_match(pattern: str, run: Run, containers: Sequence[str], clients: Clients) -> str | None:
    """The first line that matches; None when none does. One that prints a config has the patterns in it."""
    wanted = line_pb2.LineFilter(trial_id=run.trial_id, runs=[run.run], regex=pattern, containers=containers)
    request = logs_pb2.ListLinesRequest(filter=wanted, page_size=_LINES)
    passed = 0
    while passed < _MOST_OF_CONFIG:
        try:
            response = await clients.logs.ListLines(request, timeout=_DEADLINE)
        except InvalidArgumentError as error:
            # A pattern that the config accepted and the search does not must not keep the run from its end.
            _log.warning("a log policy cannot be applied", allocation=run.allocation_id, reason=str(error))
            return None
        for line in response.lines:
            if _OF_CONFIG not in line.message:
                return str(line.message)
        passed += len(response.lines)
        if not response.next_page_token:
            return None
        request.page_token = response.next_page_token
    return None


def _note(policy: Mapping[str, Any], nodes: set[int], line: str) -> str:
    name = policy.get("name") or repr(policy["pattern"])
    effect = {
        None: "",
        "cancel_retries": ": no restart after a failure",
        "exclude_node": f": node {', '.join(map(str, sorted(nodes)))} is not used again",
    }[_action(policy)]
    shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
    return f"{name} matched {shown!r}{effect}"
