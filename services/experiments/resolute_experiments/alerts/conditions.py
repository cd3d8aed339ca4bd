"""Alerts about lasting conditions: problems, exhausted quotas, and expiring tokens and certificates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.sizes import human_size
from resolute_experiments.accounts.store import usage
from resolute_experiments.accounts.store import workspaces as workspaces_table
from resolute_experiments.accounts.store.tokens import TokenKind
from resolute_experiments.accounts.store.workspaces import Workspace
from resolute_experiments.alerts.alert import Alert
from resolute_experiments.store.schema import tokens

_DAY = 86400.0
_NUMBERS = re.compile(r"[\d.,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateEnd:
    """The expiry of a served or trusted certificate."""

    file: str
    """Where it lies."""
    subject: str
    """Whose it is, by its own words."""
    time: float
    """Unix seconds."""


def of_problem(problem: str, *, now: float) -> Alert:
    """A problem of the cluster."""
    # Sent again each day: what is wrong for a day is not to be forgotten.
    return Alert(
        key=f"problem-{_name_of(problem)}-{_day(now)}",
        on="problem",
        title="A problem of the cluster",
        text=problem,
        level="error",
        time=now,
        link="cluster",
    )


def of_nodes(pool: str, before: int, nodes: int, *, now: float) -> Alert:
    """A pool has fewer nodes than it had."""
    return Alert(
        key=f"nodes-{pool}-{nodes}-{now:.0f}",
        on="node_lost",
        title=f"Pool {pool} has lost {before - nodes} of {before} nodes",
        text=f"Pool {pool} has {nodes} nodes that take work; it had {before}.",
        level="warn",
        time=now,
        link="cluster",
    )


def of_certificate(end: CertificateEnd, *, now: float) -> Alert:
    """A certificate ends."""
    when = f"ends in {(end.time - now) / _DAY:.1f} days" if end.time > now else "has ended"
    return Alert(
        key=f"certificate-{_name_of(end.file)}-{end.time:.0f}",
        on="certificate",
        title="A certificate ends soon",
        text=f"The certificate of {end.subject} ({end.file}) {when}: put another one in its place.",
        level="warn",
        time=now,
        link="cluster",
    )


def of_tokens(connection: Connection, seconds: float, *, now: float) -> Iterator[Alert]:
    """Access tokens that end within some seconds."""
    table = tokens.c
    query = sa.select(table.id, table.description, table.expires_at)
    ending = query.where(
        table.expires_at > now,
        table.expires_at <= now + seconds,
        table.kind == TokenKind.ACCESS.value,
        sa.not_(table.revoked),
    )
    for row in connection.execute(ending):
        yield Alert(
            key=f"token-{row.id}-{row.expires_at:.0f}",
            on="token",
            title="A token ends soon",
            text=f"Token {row.id} ({row.description}) ends in {(row.expires_at - now) / 3600:.1f} hours.",
            level="warn",
            time=now,
        )


def of_quotas(
    connection: Connection,
    number: int | None,
    *,
    percent: float,
    storage: Mapping[int, int],
    now: float,
) -> Iterator[Alert]:
    """Quotas of which so much is used, again each day.

    Args:
        connection: The transaction.
        number: The workspace; None for all.
        percent: How much of a quota.
        storage: Bytes of checkpoints by workspace, as far as they are known.
        now: Unix seconds.
    """
    bounded = workspaces_table.with_quotas(connection, number)
    used = usage.of_workspaces(connection, [each.name for each in bounded])
    for workspace in bounded:
        mine, quota = used[workspace.name], workspace.quota
        for what, amount, bound in (
            ("experiments", mine.live_experiments, quota.live_experiments),
            ("slots", mine.slots, quota.slots),
            ("storage", storage.get(workspace.number, 0), quota.storage_bytes),
        ):
            if bound and amount >= bound * percent / 100:
                yield _of_quota(workspace, what, amount, bound, percent=percent, now=now)


def _of_quota(
    workspace: Workspace, what: str, amount: int, bound: int, *, percent: float, now: float
) -> Alert:
    shown, limit = (human_size(n) if what == "storage" else str(n) for n in (amount, bound))
    follows = {
        "experiments": "beyond it, new ones are refused",
        "slots": "beyond it, trials wait",
        "storage": "beyond it, new experiments are refused",
    }[what]
    return Alert(
        key=f"quota-{workspace.number}-{what}-{bound}-{percent:g}-{_day(now)}",
        on="quota",
        title=f"Workspace {workspace.name} uses {amount / bound:.0%} of its quota of {what}",
        text=f"Workspace {workspace.name} uses {shown} of {limit}, its quota of {what}; {follows}.",
        level="warn",
        time=now,
    )


def _name_of(problem: str) -> str:
    """A short name of a problem, without the numbers in it, which change while the problem is the same."""
    return hashlib.sha256(_NUMBERS.sub("", problem).encode()).hexdigest()[:16]


def _day(now: float) -> int:
    return int(now // _DAY)
