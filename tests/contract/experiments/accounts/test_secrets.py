"""Secrets for scripts, on both databases: whose they are, which of them a run gets, and what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import Store
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import secrets_service_pb2 as pb2
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidConfigError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
)
from resolute_experiments.accounts import secrets
from resolute_experiments.accounts.secrets import Secrets
from resolute_experiments.accounts.servicers.secrets import SecretsServicer
from resolute_experiments.accounts.store import users, workspaces
from resolute_experiments.store import alerts, experiments, trials
from resolute_experiments.store.schema import secrets as table
from resolute_experiments.store.schema import users as users_table
from resolute_serving.context import Role, User, current_principal
from resolute_serving.database.engine import Database
from resolute_serving.sealing import Sealer

ADA, BOB = User("ada", Role.EDITOR), User("bob", Role.EDITOR)


class World:
    """A database with the users ada and bob, a workspace and an experiment of ada's in it."""

    def __init__(self, database: Database) -> None:
        self.database, self.clock = database, ManualClock(1000.0)
        self.store = Store(database.engine)
        self.servicer = self.with_key(bytes(32))
        self.store.run(lambda c: users.create(c, ADA, now=1.0))
        self.store.run(lambda c: users.create(c, BOB, now=1.0))
        self.workspace = self.store.run(lambda c: workspaces.create(c, "w", owner="ada", now=1.0)).number
        self.allocation = self.store.start(self.store.create_trial()).allocation_id

    def with_key(self, key: bytes) -> SecretsServicer:
        return SecretsServicer(context(self.database, self.clock), Secrets(Sealer(key)))

    def names(self, entries: Sequence[str]) -> None:
        """Lets the experiment's config name secrets."""
        self.change(config={**self.store.experiment().config, "environment": {"secrets": list(entries)}})

    def change(self, **values: Any) -> None:
        """Changes columns of the experiment."""
        self.store.run(lambda c: experiments.update(c, self.store.experiment_id, **values))

    def put(self, name: str, value: str, *, user: str = "ada", workspace: int = 0) -> None:
        with acting(user):
            request = pb2.SetSecretRequest(workspace_id=workspace, name=name, value=value)
            asyncio.run(self.servicer.SetSecret(request, None))

    def delete(self, name: str, *, workspace: int = 0) -> None:
        with acting("ada"):
            request = pb2.DeleteSecretRequest(workspace_id=workspace, name=name)
            asyncio.run(self.servicer.DeleteSecret(request, None))

    def listed(self, *, user: str = "ada", workspace: int = 0) -> list[str]:
        with acting(user):
            request = pb2.ListSecretsRequest(workspace_id=workspace)
            answer = asyncio.run(self.servicer.ListSecrets(request, None))
        return [secret.name for secret in answer.secrets]

    def given(self, servicer: SecretsServicer | None = None) -> dict[str, str]:
        request = pb2.GetRunSecretsRequest(allocation_id=self.allocation)
        return dict(asyncio.run((servicer or self.servicer).GetRunSecrets(request, None)).values)


@contextmanager
def acting(name: str) -> Iterator[None]:
    token = current_principal.set(User(name, Role.EDITOR))
    try:
        yield
    finally:
        current_principal.reset(token)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield World(made)
    made.close()


def test_a_run_gets_what_its_config_names_the_owners_own_first(world: World) -> None:
    world.put("hub", "of the workspace", workspace=world.workspace)
    world.put("index", "index of the workspace", workspace=world.workspace)
    world.put("hub", "of bob himself", user="bob")
    world.put("other", "nobody asks for it")
    world.names(["HF_TOKEN=hub", "index"])
    assert world.given() == {"hub": "of the workspace", "index": "index of the workspace"}
    world.put("hub", "of ada herself")
    assert world.given()["hub"] == "of ada herself"
    world.put("hub", "of ada herself, again")
    assert world.given()["hub"] == "of ada herself, again"
    assert (world.listed(), world.listed(user="bob")) == (["hub", "other"], ["hub"])
    assert world.listed(workspace=world.workspace) == ["hub", "index"]
    deactivated = sa.update(users_table).where(users_table.c.name == "ada").values(active=False)
    world.store.run(lambda c: c.execute(deactivated))
    # Another value must not take the place of hers unseen.
    with pytest.raises(FailedPreconditionError, match="secret 'hub' is one of ada, who is deactivated"):
        world.given()
    world.names(["index"])
    assert world.given() == {"index": "index of the workspace"}


def test_a_run_without_names_gets_none_and_what_is_gone_is_said(world: World) -> None:
    world.put("hub", "a value to keep")
    assert world.given() == {}
    world.names(["hub"])
    world.delete("hub")
    with pytest.raises(
        FailedPreconditionError, match=r"secret 'hub'.*does not exist; `resolute secret set hub`"
    ):
        world.given()
    with pytest.raises(NotFoundError, match="secret 'hub' does not exist; `resolute secret list`"):
        world.delete("hub")


def test_only_the_latest_run_of_the_cluster_gets_secrets(world: World) -> None:
    world.put("hub", "a value to keep")
    world.names(["hub"])
    run = world.store.run(lambda c: experiments.get(c, experiment_id=world.store.experiment_id))
    assert world.given()
    world.change(unmanaged=True)
    with pytest.raises(PermissionDeniedError, match="runs outside of the cluster"):
        world.given()
    world.change(unmanaged=False)
    later = world.store.start(trial_of(world, run.id))
    with pytest.raises(RunSupersededError):
        world.given()
    world.allocation = later.allocation_id
    assert world.given()


def trial_of(world: World, experiment_id: str) -> str:
    return str(world.store.run(lambda c: trials.of_experiment(c, experiment_id))[0].id)


def test_a_config_that_names_no_secret_of_its_owner_is_refused(world: World) -> None:
    def require() -> None:
        experiment = world.store.experiment()
        world.store.run(lambda c: secrets.require_named(c, experiment, experiment.config))

    world.names(["HF_TOKEN=hub"])
    world.put("hub", "of bob himself", user="bob")
    with pytest.raises(
        InvalidConfigError, match=r"environment\.secrets: 'hub' is not a secret of ada or of workspace"
    ):
        require()
    world.put("hub", "of the workspace", workspace=world.workspace)
    require()


def test_nobody_else_changes_what_runs_with_secrets_of_the_owner(world: World) -> None:
    before = world.store.experiment()
    config = {**before.config, "environment": {"secrets": ["hub"]}}
    with acting("bob"):
        secrets.require_owner(before, before.config)
        with pytest.raises(PermissionDeniedError, match="`resolute experiment fork"):
            secrets.require_owner(before, config)
    with acting("ada"):
        secrets.require_owner(before, config)


def test_what_is_stored_is_encrypted_for_its_place_alone(world: World) -> None:
    world.put("hub", "a value to keep")
    world.names(["hub"])
    row = world.store.run(lambda c: c.execute(sa.select(table)).one())
    assert b"value" not in bytes(row.sealed)
    with pytest.raises(FailedPreconditionError, match="was not encrypted with"):
        world.given(world.with_key(bytes(31) + b"1"))
    # Who can write the database cannot give one user's secret to another.
    bob = world.store.run(lambda c: users.get(c, name="bob"))
    world.store.run(lambda c: c.execute(sa.update(table).values(user_number=bob.number)))
    world.change(owner="bob")
    with pytest.raises(FailedPreconditionError, match="was not encrypted with"):
        world.given()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("../hub", "a value to keep", "is not a name of a secret"),
        ("", "a value to keep", "is not a name of a secret"),
        ("h" * 65, "a value to keep", "is not a name of a secret"),
        ("hub", "short", "of 8 characters"),
        ("hub", "a value\0to keep", "text without NUL"),
        ("hub", "v" * (32 * 1024 + 1), "to 32768 bytes"),
    ],
)
def test_what_cannot_be_a_secret_is_refused(world: World, name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        world.put(name, value)
    assert world.listed() == []


def test_a_holder_has_a_hundred_secrets_at_most_and_a_workspace_takes_its_own_along(world: World) -> None:
    for number in range(secrets.MOST):
        world.put(f"s{number}", "a value to keep", workspace=world.workspace)
    with pytest.raises(InvalidArgumentError, match="100 secrets already"):
        world.put("one-more", "a value to keep", workspace=world.workspace)
    world.put("s0", "another value", workspace=world.workspace)
    world.put("mine", "a value to keep")
    world.change(workspace="elsewhere")
    rules = alerts.StoredRules(workspace_number=world.workspace, rules=(), only_named=frozenset())
    world.store.run(lambda c: alerts.write(c, rules, sealed=b"a webhook", now=1.0))
    world.store.run(lambda c: workspaces.delete(c, workspaces.get(c, number=world.workspace)))
    assert world.store.run(lambda c: alerts.sealed(c, world.workspace)) is None
    assert world.store.run(lambda c: c.execute(sa.select(table.c.name)).scalars().all()) == ["mine"]


def test_a_new_key_before_the_old_one_takes_over_its_secrets(world: World) -> None:
    new, old = bytes([1]) * 32, bytes(32)
    world.put("hub", "of ada herself")
    world.put("hub", "of the workspace", workspace=world.workspace)
    world.put("lost", "by a key that is gone")
    world.store.run(
        lambda c: c.execute(sa.update(table).where(table.c.name == "lost").values(sealed=b"x" * 40))
    )
    rotated = Secrets(Sealer(new, old))
    assert [world.store.run(rotated.renew) for _ in range(2)] == [2, 0]
    world.names(["hub"])
    assert world.given(world.with_key(new)) == {"hub": "of ada herself"}
    with pytest.raises(FailedPreconditionError, match="not encrypted with"):
        world.given(world.with_key(old))
