"""Users, tokens, workspaces, projects and quotas, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import experiment_row
from sqlalchemy.engine import Connection, Engine
from support.databases.prepared import migrate

from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidConfigError,
    NotFoundError,
    QuotaError,
)
from resolute_experiments.accounts.store import projects, tokens, usage, users, workspaces
from resolute_experiments.accounts.store.tokens import IssuedToken
from resolute_experiments.accounts.store.usage import Usage
from resolute_experiments.accounts.store.workspaces import UNCATEGORIZED, Quota
from resolute_experiments.accounts.workspace_quotas import admit
from resolute_experiments.store import experiments
from resolute_experiments.store.schema import audit
from resolute_experiments.store.schema import experiments as table
from resolute_serving.context import Role, User
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine

T = TypeVar("T")
Run = Callable[[Callable[[Connection], Any]], Any]


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url, name="experiments", writes=True)
    yield engine
    engine.dispose()


@pytest.fixture
def run(engine: Engine) -> Run:
    migrate(engine, package="resolute_experiments", schema="experiments")

    def call(work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)

    call(lambda c: projects.ensure_uncategorized(c, owner="admin", now=1.0))
    return call


def submit(run: Run, *, workspace: str = "vision", project: str = "cats", state: str = "ACTIVE") -> str:
    row = experiment_row(str(uuid.uuid4()))
    row |= {"workspace": workspace, "project": project, "state": state}
    run(lambda c: experiments.insert(c, row, b""))
    return str(row["id"])


def make(run: Run, workspace: str = "vision", project: str = "cats") -> None:
    run(lambda c: workspaces.create(c, workspace, owner="ada", now=2.0))
    run(lambda c: projects.create(c, workspace, project, description="", notes="", owner="ada", now=2.0))


def test_users_have_roles_and_are_let_in_or_not(run: Run) -> None:
    run(lambda c: users.ensure(c, User("admin", Role.ADMIN), now=1.0))
    run(lambda c: users.ensure(c, User("admin", Role.VIEWER), now=2.0))
    assert run(lambda c: users.get(c, name="admin")).role is Role.ADMIN
    ada = run(lambda c: users.create(c, User("ada", Role.EDITOR), now=3.0))
    assert (ada.active, ada.password) == (True, "")
    assert ada.user == User("ada", Role.EDITOR, user_id=ada.number)
    for taken in ("ada", "ADA"):
        with pytest.raises(AlreadyExistsError, match="user ada exists already"):
            run(partial(users.create, user=User(taken, Role.VIEWER), now=3.0))
    gone = run(lambda c: users.update(c, ada, name="ada", role=Role.VIEWER, active=False))
    with pytest.raises(FailedPreconditionError, match="resolute user activate ada"):
        _ = gone.user
    other_letters = run(lambda c: users.update(c, gone, name="Ada", role=Role.VIEWER, active=True))
    assert other_letters.name == "Ada"
    assert run(users.active_admins) == 1
    with pytest.raises(NotFoundError, match="user 'eve' does not exist"):
        run(lambda c: users.get(c, name="eve"))


def issue(run: Run, username: str, *, expires_at: float) -> str:
    token_id = str(uuid.uuid4())
    token = IssuedToken(
        id=token_id,
        username=username,
        user_number=0,
        description="",
        created_at=10.0,
        expires_at=expires_at,
        revoked=False,
    )
    run(lambda c: tokens.insert(c, token))
    return token_id


def test_ended_tokens_are_told_until_they_would_expire_anyway(run: Run) -> None:
    first, second = issue(run, "ada", expires_at=100.0), issue(run, "ada", expires_at=200.0)
    other = issue(run, "grace", expires_at=200.0)
    run(lambda c: tokens.revoke_all(c, "ada"))
    assert run(lambda c: tokens.revoked(c, now=50.0)) == sorted([first, second])
    assert run(lambda c: tokens.revoked(c, now=150.0)) == [second]
    run(lambda c: tokens.revoke(c, other))
    assert set(run(lambda c: tokens.revoked(c, now=150.0))) == {second, other}


def test_expired_tokens_are_forgotten(run: Run) -> None:
    old = issue(run, "ada", expires_at=9.0)
    issue(run, "ada", expires_at=100.0)
    with pytest.raises(NotFoundError, match="expired"):
        run(lambda c: tokens.get(c, old))


def test_experiments_that_name_nothing_are_uncategorized(run: Run) -> None:
    run(lambda c: admit(c, workspace=UNCATEGORIZED, project=UNCATEGORIZED, slots=8))


@pytest.mark.parametrize(
    ("workspace", "project", "said"),
    [
        ("audio", "cats", "workspace: found 'audio'; there is none; `resolute workspace create`"),
        ("vision", "dogs", "project: found 'dogs'; there is none in workspace 'vision'"),
    ],
)
def test_experiments_come_only_to_places_that_exist(
    run: Run, workspace: str, project: str, said: str
) -> None:
    make(run)
    with pytest.raises(InvalidConfigError, match=said) as caught:
        run(lambda c: admit(c, workspace=workspace, project=project, slots=1))
    assert caught.value.violations[0].field in {"workspace", "project"}


def test_archived_places_take_no_experiments(run: Run) -> None:
    make(run)
    vision = run(lambda c: workspaces.get(c, name="vision"))
    run(lambda c: workspaces.update(c, vision, name="vision", archived=True))
    with pytest.raises(InvalidConfigError, match="resolute workspace unarchive"):
        run(lambda c: admit(c, workspace="vision", project="cats", slots=1))
    run(lambda c: workspaces.update(c, vision, name="vision", archived=False))
    cats = run(lambda c: projects.get(c, workspace="vision", name="cats"))
    run(lambda c: projects.update(c, cats, name="cats", description="d", notes="n", archived=True))
    with pytest.raises(InvalidConfigError, match="resolute project unarchive"):
        run(lambda c: admit(c, workspace="vision", project="cats", slots=1))


def test_quotas_act_at_admission(run: Run) -> None:
    make(run)
    vision = run(lambda c: workspaces.get(c, name="vision"))
    run(lambda c: workspaces.set_quota(c, vision, Quota(live_experiments=2, slots=4)))
    submit(run)
    submit(run, state="COMPLETED")
    run(lambda c: admit(c, workspace="vision", project="cats", slots=4))
    with pytest.raises(QuotaError, match="needs 5 slots, and workspace 'vision' may use 4"):
        run(lambda c: admit(c, workspace="vision", project="cats", slots=5))
    submit(run, state="PAUSED")
    with pytest.raises(QuotaError, match="has 2 experiments that have not ended, and may have 2"):
        run(lambda c: admit(c, workspace="vision", project="cats", slots=1))
    used = run(lambda c: usage.of_workspaces(c, ["vision", "void"]))
    assert used == {
        "vision": Usage(projects=1, experiments=3, live_experiments=2, slots=0),
        "void": Usage(projects=0, experiments=0, live_experiments=0, slots=0),
    }


def test_places_that_hold_experiments_stay(run: Run) -> None:
    make(run)
    experiment_id = submit(run, state="COMPLETED")
    vision = run(lambda c: workspaces.get(c, name="vision"))
    cats = run(lambda c: projects.get(c, workspace="vision", name="cats"))
    with pytest.raises(FailedPreconditionError, match="holds 1 experiments"):
        run(lambda c: workspaces.delete(c, vision))
    with pytest.raises(FailedPreconditionError, match="holds 1 experiments"):
        run(lambda c: projects.delete(c, cats))
    run(
        lambda c: experiments.move(
            c,
            experiments.get(c, experiment_id=experiment_id),
            workspace=UNCATEGORIZED,
            project=UNCATEGORIZED,
        )
    )
    run(lambda c: workspaces.delete(c, vision))
    with pytest.raises(NotFoundError, match="project 'cats' does not exist in workspace 'vision'"):
        run(lambda c: projects.get(c, workspace="vision", name="cats"))


def test_the_place_of_what_names_none_stays(run: Run) -> None:
    default = run(lambda c: workspaces.get(c, name=UNCATEGORIZED))
    with pytest.raises(FailedPreconditionError, match="takes the experiments that name none"):
        run(lambda c: workspaces.delete(c, default))


def test_names_are_taken_once(run: Run) -> None:
    make(run)
    with pytest.raises(AlreadyExistsError, match="workspace 'vision' exists already"):
        run(lambda c: workspaces.create(c, "vision", owner="eve", now=3.0))
    with pytest.raises(AlreadyExistsError, match="project 'cats' exists already"):
        run(lambda c: projects.create(c, "vision", "cats", description="", notes="", owner="eve", now=3.0))
    with pytest.raises(NotFoundError, match="workspace 'audio' does not exist"):
        run(lambda c: projects.create(c, "audio", "cats", description="", notes="", owner="eve", now=3.0))


def test_an_upgrade_makes_the_places_that_experiments_named_already(engine: Engine) -> None:
    migrations.upgrade(engine, package="resolute_experiments", schema="experiments", revision="0003")
    with engine.begin() as connection:
        row = experiment_row(str(uuid.uuid4())) | {"workspace": "old", "project": "ideas"}
        connection.execute(sa.insert(table).values(**row))
    migrations.upgrade(engine, package="resolute_experiments", schema="experiments")
    with engine.begin() as connection:
        assert projects.get(connection, workspace="old", name="ideas").owner == "ada"
        admit(connection, workspace="old", project="ideas", slots=1)


def test_an_upgrade_numbers_users_and_keeps_everything_else(engine: Engine) -> None:
    migrations.upgrade(engine, package="resolute_experiments", schema="experiments", revision="0009")
    with engine.begin() as connection:
        for name, role, created_at in (
            ("zoe", "viewer", 1.0),
            ("ada", "editor", 2.0),
            ("admin", "admin", 3.0),
        ):
            connection.execute(
                sa.text(
                    "INSERT INTO users (name, role, created_at, active, password)"
                    " VALUES (:name, :role, :created_at, :active, 'hash')"
                ),
                {"name": name, "role": role, "created_at": created_at, "active": name != "zoe"},
            )
        for actor in ("ada", "service:searcher"):
            connection.execute(
                sa.text(
                    "INSERT INTO audit (time, actor, action, resource, detail)"
                    " VALUES (1.0, :actor, 'pause', 'experiment 1', '{}')"
                ),
                {"actor": actor},
            )
        connection.execute(
            sa.text(
                "INSERT INTO workspaces (name, owner, archived, created_at, live_experiments, slots)"
                " VALUES ('vision', 'zoe', false, 1.0, 0, 0)"
            )
        )
    migrations.upgrade(engine, package="resolute_experiments", schema="experiments")
    with engine.begin() as connection:
        zoe = users.get(connection, name="zoe")
        assert (zoe.number, zoe.role, zoe.active, zoe.password) == (2, Role.VIEWER, False, "hash")
        assert users.ids_of(connection, ["admin", "ada", "eve"]) == {"admin": 1, "ada": 3}
        assert users.create(connection, User("eve", Role.VIEWER), now=4.0).number == 4
        rows = connection.execute(sa.select(audit.c.user_number).order_by(audit.c.position)).scalars().all()
        assert rows == [3, None]
        vision = workspaces.get(connection, name="vision")
        assert (vision.owner, vision.owner_number, vision.revision) == ("zoe", 2, 1)


def test_an_upgrade_of_an_empty_database_makes_the_admin_the_first_user(engine: Engine) -> None:
    migrations.upgrade(engine, package="resolute_experiments", schema="experiments")
    with engine.begin() as connection:
        users.ensure(connection, User("determined", Role.EDITOR), now=1.0)
        assert users.ids_of(connection, ["admin", "determined"]) == {"admin": 1, "determined": 2}


def test_new_names_reach_everything_that_refers_to_them(run: Run) -> None:
    ada = run(lambda c: users.create(c, User("ada", Role.EDITOR), now=1.0))
    make(run)
    token_id, experiment_id = issue(run, "ada", expires_at=100.0), submit(run)
    run(lambda c: users.update(c, ada, name="ada.l", role=Role.EDITOR, active=True))
    vision = run(lambda c: workspaces.get(c, name="vision"))
    run(lambda c: workspaces.update(c, vision, name="images", archived=False))
    cats = run(lambda c: projects.get(c, workspace="images", name="cats"))
    run(lambda c: projects.update(c, cats, name="dogs", description="", notes="", archived=False))
    experiment = run(lambda c: experiments.get(c, experiment_id=experiment_id))
    assert (experiment.owner, experiment.workspace, experiment.project) == ("ada.l", "images", "dogs")
    assert run(lambda c: tokens.get(c, token_id)).user_number == ada.number
    images = run(lambda c: workspaces.of_experiment(c, experiment_id))
    assert (images.number, images.name, images.owner_number) == (vision.number, "images", ada.number)
    dogs = run(lambda c: projects.get(c, number=cats.number))
    assert (dogs.workspace_number, dogs.owner, dogs.revision) == (vision.number, "ada.l", 2)


def test_what_the_cluster_itself_relies_on_keeps_its_name(run: Run) -> None:
    admin = run(lambda c: users.get(c, name="admin"))
    with pytest.raises(FailedPreconditionError, match="user admin keeps its name"):
        run(lambda c: users.update(c, admin, name="root", role=Role.ADMIN, active=True))
    default = run(lambda c: workspaces.get(c, name=UNCATEGORIZED))
    for name, archived in (("other", False), (UNCATEGORIZED, True)):
        with pytest.raises(FailedPreconditionError, match="neither renamed nor archived"):
            run(partial(workspaces.update, before=default, name=name, archived=archived))
    project = run(lambda c: projects.get(c, workspace=UNCATEGORIZED, name=UNCATEGORIZED))
    with pytest.raises(FailedPreconditionError, match="neither renamed nor archived"):
        run(lambda c: projects.update(c, project, name="x", description="", notes="", archived=False))
