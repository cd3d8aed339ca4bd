"""What `det` prints of machines, tasks, models, accounts and the like, on real services."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.services.in_process import Running
from wire.cli.conftest import CommandLine, point_home
from wire.cli.determined.output import SERVED, TASK, Case, check


@pytest.fixture
def served(services: Running, home: Path, determined: CommandLine, code: Path) -> None:
    """Real services with one experiment, one command, one model, one token and one template."""
    point_home(home, services)
    if not json.loads(determined("model", "list", "--json").out):
        (code / "const.yaml").write_text("{name: d, entrypoint: x, searcher: {name: single, metric: loss}}")
        (code / "t.yaml").write_text("{resources: {priority: 5}}")
        for line in (
            f"e create {code / 'const.yaml'} {code} --paused",
            # Nothing may start here: the services end with the tests, and a supervisor would look for them.
            "agent disable --all",
            "command run --detach true",
            "command kill 2",
            "agent enable --all",
            "model create net -w Uncategorized",
            "token create -d ci",
            f"template set small {code / 't.yaml'}",
        ):
            outcome = determined(*line.split())
            assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("case", SERVED, ids=lambda case: f"{case.line} {case.path}")
def test_everything_else(served: None, determined: CommandLine, case: Case) -> None:
    check(determined, case)


def test_what_is_made_is_told_as_the_lists_tell_it(served: None, determined: CommandLine) -> None:
    made = json.loads(determined("workspace", "create", "ci", "--json").out)
    assert made["numProjects"] == 0
    assert json.loads(determined("workspace", "edit", "ci", "--name", "cj", "--json").out)["name"] == "cj"
    project = json.loads(determined("project", "create", "cj", "p", "--json").out)
    assert project["workspaceId"] == made["id"]
    assert (
        json.loads(determined("project", "edit", "cj", "p", "--new_name", "q", "--json").out)["name"] == "q"
    )
    token = json.loads(determined("token", "create", "--json").out)
    assert set(token) == {"token", "tokenId"}
    assert (
        json.loads(determined("token", "describe", token["tokenId"], "--json").out)[0]["id"]
        == token["tokenId"]
    )
    told = yaml.safe_load(determined("version").out)
    assert (
        told["master"]["cluster_id"]
        == yaml.safe_load(determined("master", "info", "--yaml").out)["clusterId"]
    )
    assert told["client"]["version"]


def test_machines_are_named_as_they_are_listed(served: None, determined: CommandLine) -> None:
    (name,) = {one["id"] for one in json.loads(determined("agent", "list", "--json").out)}
    held = json.loads(determined("agent", "disable", name, "--json").out)
    assert all(set(TASK.split()) <= set(task) for task in held.values())
    assert json.loads(determined("agent", "list", "--json").out)[0]["enabled"] is False
    assert determined("agent", "enable", name).code == 0
    assert determined("slot", "disable", name, "0").code == 0
    assert determined("slot", "enable", name, "0").code == 0
    assert "is not a machine such as" in determined("agent", "enable", "gpu-node").err
