"""Users, workspaces and quotas as an admin sets them up and others meet them: by commands and by scripts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

ROOT = Path(__file__).parents[3]
CONFIG = """
name: placed
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
"""
SCRIPT = """
from resolute.client import Client, UserRole

with Client() as cluster:
    ada = cluster.create_user("ada", password="a password of ada")
    assert (ada.role, ada.admin, ada.active) == (UserRole.EDITOR, False, True)
    vision = cluster.create_workspace("vision")
    cats = vision.create_project("cats", "whiskers")
    assert [project.name for project in vision.list_projects()] == ["cats"]
    with Client(user="ada", password="a password of ada") as hers:
        assert hers.whoami().username == "ada"
        placed = hers.create_experiment("placed.yaml", "code", project_id=cats.id)
        assert (placed.owner, placed.workspace, placed.project) == ("ada", "vision", "cats")
        assert [each.id for each in hers.list_experiments(project_id=cats.id)] == [placed.id]
        placed.kill()
        placed.wait()
        placed.move_to_project("Uncategorized", "Uncategorized")
        assert placed.workspace == "Uncategorized"
    vision.assign_role("ada", UserRole.ADMIN)
    assert [(one.user, one.role) for one in vision.list_roles()] == [
        ("ada", UserRole.ADMIN),
        ("admin", UserRole.ADMIN),
    ]
    vision.remove_role("ada")
    assert [one.user for one in vision.list_roles()] == ["admin"]
    vision.delete_project("cats")
    cluster.delete_workspace("vision")
    cluster.get_user_by_name("ada").deactivate()
    assert not cluster.get_user_by_name("ada").active
    print("all of it")
"""

STORING = """
import determined as det

with det.core.init() as core:
    with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
        (path / "weights").write_bytes(bytes(2 * 1024 * 1024))
    for operation in core.searcher.operations():
        operation.report_completed(1.0)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print('never mind')\n")
    (tmp_path / "placed.yaml").write_text(CONFIG)
    return tmp_path


def piped(
    cluster: EmbeddedCluster, *arguments: str, text: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs a command with text on its standard input."""
    command = [str(Path(sys.executable).parent / "det"), *arguments]
    return subprocess.run(
        command,
        env=cluster.variables(),
        input=text,
        capture_output=True,
        text=True,
        check=check,
        timeout=60,
    )


def as_user(cluster: EmbeddedCluster, home: Path, token: str) -> EmbeddedCluster:
    """The same cluster seen from elsewhere by somebody with a token of their own."""
    address = cluster.run("resolute", "version").stdout.rsplit(" at ", 1)[1].strip()
    return EmbeddedCluster(home, environment={"RESOLUTE_MASTER": address, "RESOLUTE_TOKEN": token})


@pytest.mark.sampled(2, group="pages that run long")
def test_the_page_about_access_runs_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs/access.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    shutil.copytree(ROOT / "examples/digits", tmp_path / "examples/digits")
    with embedded(tmp_path / "home") as fresh:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", "".join(blocks)],
            env={**fresh.variables(), "PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr
    assert "\nada\n" in done.stdout
    assert "only when it has ended" in done.stdout
    assert "the config policies of workspace vision are set" in done.stdout
    assert "user grace is now editor in workspace text" in done.stdout
    assert "user grace is now Viewer in workspace text" in done.stdout


def test_scripts_lead_users_workspaces_and_projects(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "script.py").write_text(SCRIPT)
    assert cluster.run("python", "script.py", cwd=project).stdout == "all of it\n"


def test_a_password_lets_in_until_the_user_is_deactivated(cluster: EmbeddedCluster) -> None:
    cluster.det("user", "create", "grace", "--role", "viewer")
    refused = piped(cluster, "user", "login", "grace", "--password-stdin", text="nothing\n", check=False)
    assert refused.returncode == 1
    assert "the name or the password is wrong" in refused.stderr
    assert "token" not in refused.stderr
    piped(cluster, "user", "change-password", "grace", "--password-stdin", text="navy cobol\n")
    assert (
        "as grace" in piped(cluster, "user", "login", "grace", "--password-stdin", text="navy cobol\n").stdout
    )
    # Beside it is the proof that she has signed in from here.
    (credential,) = (path for path in (cluster.home / "credentials").iterdir() if "~" not in path.name)
    assert credential.stat().st_mode & 0o777 == 0o600
    assert cluster.det("user", "whoami").stdout == "grace\n"
    denied = cluster.det("workspace", "create", "mine", check=False)
    assert "user grace is a viewer in the cluster, and CreateWorkspace needs the role editor" in denied.stderr
    token = credential.read_text()
    cluster.det("user", "logout")
    assert cluster.det("user", "whoami").stdout == "admin\n"
    hers = as_user(cluster, cluster.home / "grace", token)
    assert hers.det("user", "whoami").stdout == "grace\n"
    cluster.det("user", "deactivate", "grace")
    ended = hers.det("user", "whoami", check=False)
    assert "the token was revoked; log in again" in ended.stderr
    again = piped(cluster, "user", "login", "grace", "--password-stdin", text="navy cobol\n", check=False)
    assert "is deactivated" in again.stderr
    assert "navy cobol" not in "".join(path.read_text() for path in cluster.home.glob("*.log"))


def test_users_see_to_what_is_their_own(cluster: EmbeddedCluster) -> None:
    cluster.det("user", "create", "alan", "--role", "editor")
    token = cluster.det("token", "create", "alan", "--days", "1", "--description", "a script").stdout.strip()
    his = as_user(cluster, cluster.home / "alan", token)
    assert his.det("user", "whoami").stdout == "alan\n"
    own = his.det("token", "create", "--description", "another").stdout.strip()
    assert [row["description"] for row in his.json("token", "list")] == ["another", "a script"]
    for command in (
        ("token", "create", "admin"),
        ("token", "list", "--user", "admin"),
        ("user", "change-password", "admin", "--password-stdin"),
    ):
        assert "user alan may not" in piped(his, *command, text="long enough\n", check=False).stderr
    assert "needs the role admin" in his.det("audit", check=False).stderr
    newest = his.json("token", "list")[0]["id"]
    his.det("token", "revoke", newest)
    revoked = as_user(cluster, cluster.home / "alan", own).det("user", "whoami", check=False)
    assert "the token was revoked" in revoked.stderr
    cluster.det("user", "set-role", "alan", "viewer")
    assert "the token was revoked" in his.det("user", "whoami", check=False).stderr


def test_the_last_admin_stays_one(cluster: EmbeddedCluster) -> None:
    refused = cluster.det("user", "set-role", "admin", "viewer", check=False)
    assert "user admin is the last active admin; make another user an admin first" in refused.stderr
    assert cluster.det("user", "whoami").stdout == "admin\n"


def test_quotas_act_when_experiments_are_submitted(cluster: EmbeddedCluster, project: Path) -> None:
    cluster.det("workspace", "create", "tight")
    cluster.det("project", "create", "tight", "ideas", "--description", "few")
    cluster.det("workspace", "set-quota", "tight", "--experiments", "1", "--slots", "1")
    place = ("--config", "workspace=tight", "--config", "project=ideas", "--paused")
    cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project)
    over = cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project, check=False)
    assert "workspace 'tight' has 1 experiments that have not ended, and may have 1" in over.stderr
    cluster.det("workspace", "set-quota", "tight", "--experiments", "0")
    wide = ("--config", "resources.slots_per_trial=2")
    over = cluster.det("e", "create", "placed.yaml", "code", *place, *wide, cwd=project, check=False)
    assert "a trial needs 2 slots, and workspace 'tight' may use 1" in over.stderr
    described = cluster.json("workspace", "describe", "tight")
    assert described["workspace"]["used"] == {"live_experiments": 1, "slots": 0, "storage_bytes": 0}
    assert [each["name"] for each in described["projects"]] == ["ideas"]
    refused = cluster.det("workspace", "delete", "tight", "--yes", check=False)
    assert "workspace 'tight' holds 1 experiments" in refused.stderr


def test_a_quota_lets_trials_wait_and_says_why(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "code/train.py").write_text("import time\ntime.sleep(300)\n")
    cluster.det("workspace", "create", "narrow")
    cluster.det("project", "create", "narrow", "path")
    cluster.det("workspace", "set-quota", "narrow", "--slots", "1")
    place = ("--config", "workspace=narrow", "--config", "project=path")
    numbers = [
        cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project).stdout.split()[2]
        for _ in range(2)
    ]
    why = "the experiments of workspace narrow hold 1 of at most 1 slots (its quota)"
    wait_until(lambda: why in cluster.det("e", "describe", numbers[1]).stdout, what="the reason", pause=0.3)
    assert cluster.json("workspace", "describe", "narrow")["workspace"]["used"]["slots"] == 1
    cluster.det("e", "kill", ",".join(numbers))


def test_a_workspace_whose_checkpoints_are_too_large_takes_no_experiment(
    cluster: EmbeddedCluster, project: Path
) -> None:
    (project / "code/train.py").write_text(STORING)
    cluster.det("workspace", "create", "full")
    cluster.det("project", "create", "full", "up")
    said = cluster.det("workspace", "set-quota", "full", "--storage", "1").stdout
    assert said == "workspace full may use any live experiments, any slots, 1.0 MiB\n"
    submit = ("e", "create", "placed.yaml", "code", "--config", "workspace=full", "--config", "project=up")
    number = cluster.det(*submit, cwd=project).stdout.split()[2]
    cluster.det("e", "wait", number, timeout=120)
    used = cluster.json("workspace", "describe", "full")["workspace"]["used"]["storage_bytes"]
    assert 0 <= used - 2 * 1024 * 1024 < 1024, "the weights and a little metadata"
    assert "2.0 MiB of 1.0 MiB" in cluster.det("workspace", "describe", "full").stdout
    trial = str(cluster.json("e", "list-trials", number)[0]["id"])
    more = ("e", "continue", number, "--yes", "--config", "searcher.max_length=2")
    for command in (submit, more, ("e", "fork", number, "--yes"), ("t", "continue", trial, "--yes")):
        full = cluster.det(*command, cwd=project, check=False)
        assert "the checkpoints of workspace 'full' take 2.0 MiB, and may take 1.0 MiB" in full.stderr
    cluster.det("workspace", "set-quota", "full", "--storage", "0")
    cluster.det(*submit, "--paused", cwd=project)


def test_experiments_move_and_archived_places_are_closed(cluster: EmbeddedCluster, project: Path) -> None:
    cluster.det("workspace", "create", "lab")
    cluster.det("project", "create", "lab", "old")
    cluster.det("project", "create", "lab", "new")
    place = ("--config", "workspace=lab", "--config", "project=old", "--paused")
    said = cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project).stdout
    number = said.split()[2]
    cluster.det("e", "move", number, "lab", "new")
    refused = cluster.det("e", "move", number, "Uncategorized", "Uncategorized", check=False)
    assert "so it leaves that only when it has ended" in refused.stderr
    cluster.det("project", "delete", "lab", "old", "--yes")
    cluster.det("project", "set", "lab", "new", "--notes", "all of it")
    assert "all of it" in cluster.det("project", "describe", "lab", "new").stdout
    cluster.det("project", "archive", "lab", "new")
    place = ("--config", "workspace=lab", "--config", "project=new", "--paused")
    closed = cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project, check=False)
    assert "project: found 'new'; it is archived; `resolute project unarchive` opens it" in closed.stderr
    cluster.det("e", "kill", number)
    cluster.det("e", "wait", number, check=False)
    cluster.det("e", "move", number, "Uncategorized", "Uncategorized")
    cluster.det("workspace", "delete", "lab", "--yes")
    missing = cluster.det("e", "create", "placed.yaml", "code", *place, cwd=project, check=False)
    assert "workspace: found 'lab'; there is none; `resolute workspace create` makes one" in missing.stderr


def test_who_changed_what_is_on_record(cluster: EmbeddedCluster) -> None:
    cluster.det("user", "create", "barbara")
    cluster.det("user", "set-role", "barbara", "admin")
    rows = cluster.json("audit", "--resource", "user barbara")
    assert [(row["actor"], row["action"]) for row in rows] == [
        ("admin", "update_user"),
        ("admin", "create_user"),
    ]
    assert rows[0]["detail"] == {"role": "admin"}
