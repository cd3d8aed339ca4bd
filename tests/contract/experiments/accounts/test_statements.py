"""A page of a list takes as many statements with a hundred rows as with ten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, experiment_row, run_row
from sqlalchemy.engine import Connection, Engine
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import (
    access_service_pb2,
    roles_service_pb2,
    workspace_pb2,
    workspaces_service_pb2,
)
from resolute.api.searcher.v1 import action_pb2
from resolute_experiments.accounts.issuing import TokenIssuer
from resolute_experiments.accounts.servicers.access import UserHandlers
from resolute_experiments.accounts.servicers.projects import ProjectHandlers
from resolute_experiments.accounts.servicers.roles import RolesServicer
from resolute_experiments.accounts.servicers.tokens import TokenHandlers
from resolute_experiments.accounts.servicers.workspaces import WorkspaceHandlers
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.accounts.store import projects, tokens, users, workspace_roles, workspaces
from resolute_experiments.accounts.store.tokens import IssuedToken
from resolute_experiments.clients import Clients
from resolute_experiments.lifecycle import actions
from resolute_experiments.lifecycle.action_inputs import ActionInputs
from resolute_experiments.store import audit, experiments, runs, trials
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import RevokedTokens, TokenSigner
from resolute_serving.context import Role, User
from resolute_serving.database import prepared
from resolute_serving.database.engine import Database
from resolute_serving.server.channels.peers import Peers

FEW, MANY = 10, 100
EVERYTHING = 1000
"""Rows of the largest page."""


@dataclass(frozen=True)
class Accounts:
    """The handlers of the lists, on a database that nobody else uses."""

    database: Database
    users: UserHandlers
    tokens: TokenHandlers
    roles: RolesServicer
    workspaces: WorkspaceHandlers
    projects: ProjectHandlers


@pytest.fixture
def accounts(tmp_path: Path, database_url: str) -> Iterator[Accounts]:
    database, clock = Database(database_url, name="experiments"), ManualClock()
    migrate(database.engine, package="resolute_experiments", schema="experiments")
    core = context(database, clock)
    signer = TokenSigner(load_or_create_key(tmp_path / "key.pem"), cluster_id="cluster", clock=clock)
    quota = StorageQuota(database, Clients(Peers({}, token=lambda: "")))
    issuer, revoked = TokenIssuer(core, signer), RevokedTokens()
    yield Accounts(
        database,
        UserHandlers(core, signer, issuer=issuer, revoked=revoked, refusals=Refusals(clock)),
        TokenHandlers(core, issuer, revoked=revoked),
        RolesServicer(core),
        WorkspaceHandlers(core, quota),
        ProjectHandlers(core),
    )
    database.close()


def fill(connection: Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        add(connection, number)


def add(connection: Connection, number: int) -> None:
    """Writes one row of each list, and in the workspace a run that holds slots."""
    name = f"n{number}"
    user = users.create(connection, User(name, Role.EDITOR), now=1.0)
    audit.record(connection, "create_user", f"user {name}", now=1.0)
    tokens.insert(
        connection,
        IssuedToken(
            id=str(uuid.uuid4()),
            username=name,
            user_number=user.number,
            description="",
            created_at=1.0,
            expires_at=4e9,
            revoked=False,
        ),
    )
    workspace = workspaces.create(connection, name, owner=name, now=1.0)
    projects.create(connection, name, name, description="", notes="", owner=name, now=1.0)
    key = {"user": user.number, "workspace": workspace.number}
    workspace_roles.assign(connection, **key, role=Role.ADMIN, now=1.0)
    for state in ("ACTIVE", "COMPLETED"):
        row = experiment_row(str(uuid.uuid4())) | {"workspace": name, "project": name, "state": state}
        experiments.insert(connection, row, b"")
        if state == "ACTIVE":
            start(connection, row["id"], slots=1 + number % 3)


def start(connection: Connection, experiment_id: str, *, slots: int) -> None:
    create = action_pb2.Action.CreateTrial(trial_key=str(uuid.uuid4()), trial_id=str(uuid.uuid4()))
    action = action_pb2.Action(sequence=1, create_trial=create)
    actions.apply(connection, experiment_id, [action], NOW, ActionInputs())
    row = run_row(trials.get(connection, trial_id=create.trial_id), create.trial_id)
    held = list(range(slots))
    runs.insert(connection, row | {"slot_ids": held}, placements=[held])


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that any database of this process gets meanwhile."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    open_cursor = prepared.open_cursor

    def note_prepared(connection: Connection, text: str) -> Any:
        seen.append(text)
        return open_cursor(connection, text)

    sa.event.listen(Engine, "before_cursor_execute", note)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(prepared, "open_cursor", note_prepared)
            yield seen
    finally:
        sa.event.remove(Engine, "before_cursor_execute", note)


def lists(accounts: Accounts) -> dict[str, Callable[[], Awaitable[Any]]]:
    access, roles, places = access_service_pb2, roles_service_pb2, workspaces_service_pb2
    return {
        "users": lambda: accounts.users.ListUsers(access.ListUsersRequest(page_size=EVERYTHING), None),
        "tokens": lambda: accounts.tokens.ListTokens(access.ListTokensRequest(page_size=EVERYTHING), None),
        "rows": lambda: accounts.users.ListAuditRows(access.ListAuditRowsRequest(page_size=EVERYTHING), None),
        "roles": lambda: accounts.roles.ListRoles(roles.ListRolesRequest(page_size=EVERYTHING), None),
        "workspaces": lambda: accounts.workspaces.ListWorkspaces(
            places.ListWorkspacesRequest(page_size=EVERYTHING), None
        ),
        "projects": lambda: accounts.projects.ListProjects(
            places.ListProjectsRequest(page_size=EVERYTHING), None
        ),
    }


async def counted(accounts: Accounts, *, rows: int) -> dict[str, int]:
    """How many statements each list takes."""
    counts: dict[str, int] = {}
    for name, call in lists(accounts).items():
        with statements() as seen:
            response = await call()
        assert len(getattr(response, name)) >= rows
        counts[name] = len(seen)
    return counts


def test_a_page_takes_as_many_statements_however_many_rows_it_has(accounts: Accounts) -> None:
    async def scenario() -> None:
        await accounts.database.write(lambda c: fill(c, range(FEW)))
        few = await counted(accounts, rows=FEW)
        await accounts.database.write(lambda c: fill(c, range(FEW, MANY)))
        assert await counted(accounts, rows=MANY) == few
        assert max(few.values()) <= 6

    asyncio.run(scenario())


def test_lists_count_what_each_workspace_and_project_holds(accounts: Accounts) -> None:
    async def scenario() -> None:
        await accounts.database.write(lambda c: fill(c, range(FEW)))
        await accounts.database.write(lambda c: workspaces.create(c, "void", owner="ada", now=1.0))
        listed = (await lists(accounts)["workspaces"]()).workspaces
        usages = {workspace.name: workspace.usage for workspace in listed}
        held = {
            f"n{number}": workspace_pb2.WorkspaceUsage(
                live_experiments=1, slots=1 + number % 3, projects=1, experiments=2
            )
            for number in range(FEW)
        }
        assert usages == held | {"void": workspace_pb2.WorkspaceUsage()}
        counts = {one.name: one.experiment_count for one in (await lists(accounts)["projects"]()).projects}
        assert counts == dict.fromkeys(held, 2)

    asyncio.run(scenario())
