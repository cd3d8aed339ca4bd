"""Commands of the documented command line on real services, all of them in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.services.in_process import Running
from wire.cli.conftest import CommandLine, point_home


@pytest.fixture
def det(services: Running, home: Path, resolute: CommandLine) -> CommandLine:
    """The command line as an admin of these services."""
    point_home(home, services)
    return resolute


def json_of(det: CommandLine, *arguments: str) -> object:
    outcome = det(*arguments)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def create(det: CommandLine, code: Path, *arguments: str) -> str:
    """Submits an experiment that nobody runs, and returns its number."""
    (code / "const.yaml").write_text(
        "{name: digits, entrypoint: x, searcher: {name: single, metric: loss, max_length: {batches: 1}}}"
    )
    created = json_of(
        det, "e", "create", str(code / "const.yaml"), str(code), "--paused", "--json", *arguments
    )
    assert isinstance(created, dict)
    return str(created["id"])


def test_users_are_edited_and_renamed(det: CommandLine) -> None:
    created = json_of(det, "user", "create", "eve", "--json")
    assert isinstance(created, dict)
    assert created["role"] == "editor"
    assert det("u", "rename", "eve", "eva").out == "user eve is called eva\n"
    edited = det("user", "edit", "eva", "--username", "evi", "--admin", "true", "--active", "false")
    assert edited.out == "user evi is admin and deactivated\n"
    assert "evi" not in det("user", "list").out
    assert "evi" in det("user", "list", "--all").out
    assert det("user", "edit", "evi", "--admin", "false").out == "user evi is editor and deactivated\n"
    assert det("user", "edit", "nobody", "--active", "true").code == 1
    assert det("user", "edit", "evi").code == 2


def test_tokens_are_described(det: CommandLine) -> None:
    det("user", "create", "grace")
    token = json_of(det, "token", "create", "grace", "-e", "3", "-d", "notebook", "--json")
    assert isinstance(token, dict)
    assert token["token"]
    (described,) = yaml.safe_load(det("token", "describe", token["id"], "--yaml").out)
    assert (described["username"], described["description"]) == ("grace", "notebook")
    assert token["id"] in det("tkn", "ls", "grace").out
    assert "there is no token" in det("token", "describe", "nope").err


def test_workspaces_and_projects_are_listed_and_edited(det: CommandLine, code: Path) -> None:
    assert json_of(det, "workspace", "create", "sight", "--json")
    assert det("w", "edit", "sight", "--name", "vision").out == "workspace sight is called vision\n"
    project = json_of(det, "project", "create", "vision", "cats", "--json")
    assert isinstance(project, dict)
    det("project", "create", "vision", "bees")
    edited = json_of(
        det, "p", "edit", "vision", "cats", "--new_name", "felines", "--description", "x", "--json"
    )
    assert isinstance(edited, dict)
    assert (edited["name"], edited["description"]) == ("felines", "x")
    names = [line.split()[1] for line in det("w", "list-projects", "vision").out.splitlines()[1:]]
    assert names == ["bees", "felines"]
    last = json_of(det, "w", "list-projects", "vision", "--sort-by", "name", "--order-by", "desc", "--json")
    assert isinstance(last, list)
    assert [one["name"] for one in last] == ["felines", "bees"]
    number = create(det, code, "--project_id", str(project["id"]))
    shown = json_of(det, "p", "list-experiments", "vision", "felines", "--json")
    assert isinstance(shown, list)
    assert [str(one["id"]) for one in shown] == [number]
    assert "digits" in det("p", "describe", "vision", "felines").out
    assert "admin" in det("w", "list-members", "vision", "--csv").out
    limited = json_of(det, "w", "ls", "--sort-by", "id", "--limit", "1", "--json")
    assert isinstance(limited, list)
    assert len(limited) == 1


def test_the_queue_is_changed_beside_others(det: CommandLine, code: Path) -> None:
    first, second = create(det, code), create(det, code)
    assert det("job", "update-batch", f"{first}.priority=40", f"{second}.weight=2").code == 0
    assert det("job", "update", second, "--ahead-of", first).out.endswith("has priority 39, weight 2\n")
    assert det("job", "update", second, "--behind-of", first).out.endswith("has priority 41, weight 2\n")
    det("job", "update", first, "--priority", "1")
    refused = det("job", "update", second, "--ahead-of", first)
    assert "has priority 1, and there is none beyond it" in refused.err
    assert det("job", "update-batch", f"{first}.name=x").code == 2
    listed = json_of(det, "job", "list", "--reverse", "--json")
    usual = json_of(det, "job", "list", "--json")
    assert isinstance(listed, list)
    assert isinstance(usual, list)
    assert listed == usual[::-1]
    assert len(yaml.safe_load(det("job", "list", "--limit", "1", "--yaml").out)) == 1


def test_machines_slots_and_pools_are_shown(det: CommandLine) -> None:
    info = json_of(det, "master", "info", "--json")
    assert isinstance(info, dict)
    assert info["version"]
    assert yaml.safe_load(det("master", "info", "--yaml").out) == info
    pools = json_of(det, "rp", "list", "--json")
    assert isinstance(pools, list)
    assert [pool["name"] for pool in pools] == ["default"]
    assert "There is no resource pool 'gpu'" in det("rp", "describe", "gpu").err
    slots = json_of(det, "slot", "list", "--json")
    machines = json_of(det, "agent", "ls", "--json")
    assert isinstance(slots, list)
    assert isinstance(machines, list)
    assert sum(one["slots"] for one in machines) == len(slots) == pools[0]["slots"]


def test_a_template_is_created_once(det: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("resources: {slots_per_trial: 2}\n")
    assert det("tpl", "create", "two", str(tmp_path / "t.yaml")).code == 0
    assert "`resolute template set` replaces it" in det("tpl", "create", "two", str(tmp_path / "t.yaml")).err
    assert "slots_per_trial=2" in det("tpl", "ls", "-d").out


def test_a_call_is_made_by_its_name(det: CommandLine, code: Path) -> None:
    number = create(det, code)
    answer = json_of(
        det,
        "dev",
        "curl",
        "ExperimentsService/GetExperiment",
        "-d",
        f'{{"experiment": {{"number": {number}}}}}',
    )
    assert isinstance(answer, dict)
    assert answer["experiment"]["number"] == number
    assert "ClusterService/GetCluster" in det("dev", "list").out
    assert det("dev", "auth-token").out.count(".") == 2
    assert "There is no call 'Nope'" in det("dev", "curl", "Nope").err
    assert det("dev", "curl", "GetCluster", "-d", "[").code == 2
    missing = det("dev", "curl", "GetExperiment", "-d", '{"experiment": {"number": 999}}')
    assert missing.code == 1
    assert missing.err.startswith("error: experiment 999")


def test_notes_and_csv_files_of_experiments(det: CommandLine, code: Path, tmp_path: Path) -> None:
    number = create(det, code)
    assert det("e", "set", "notes", number, "looks good").code == 0
    described = json_of(det, "e", "describe", number, "--json")
    assert isinstance(described, list)
    assert described[0]["experiment"]["notes"] == "looks good"
    assert det("e", "describe", number, "--metrics", "--outdir", str(tmp_path / "out")).code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiments.csv",
        "metrics.csv",
        "trials.csv",
    ]
    assert "Uncategorized" in det("e", "list", "--show_project", "--pages", "all").out


def test_models_move(det: CommandLine) -> None:
    det("workspace", "create", "text")
    assert json_of(det, "m", "create", "net", "-w", "Uncategorized", "--json")
    assert det("m", "move", "net", "-w", "text").out == "model net belongs to workspace text\n"
    assert "net" in det("m", "ls", "-w", "text,Uncategorized", "--sort-by", "name").out


def test_a_script_runs_without_a_config(
    det: CommandLine, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code)
    outcome = det("run", "train.py", "--detach", "--", "--lr", "0.1")
    assert outcome.code == 0, outcome.err
    number = outcome.out.split()[-1]
    assert yaml.safe_load(det("e", "config", number).out)["entrypoint"] == "python3 train.py --lr 0.1"
