"""Every command and option that docs/from-determined.md calls the same works, on real services."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import cli_lists
import pytest
import structlog
import yaml
from support.clusters.tenants import Tenant, Tenants, tenants
from support.logs import plain_logs
from support.waiting import wait_until
from wire.cli.conftest import CommandLine

from resolute.api.experiments.v1 import run_pb2, trials_service_pb2
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute_serving.context import Role, User

ROOT = Path(__file__).resolve().parents[4]
ELSEWHERE = {
    ("master logs", "-f"): ("tests/wire/cli/cluster/test_logs.py", 'resolute("master", "logs", "-f")'),
    ("experiment create", "-f"): (
        "tests/wire/cli/experiments/test_follow.py",
        '"e", "create", str(code / "const.yaml")',
    ),
    ("command logs", "--allocation-id"): (
        "tests/e2e/experiments/test_tasks.py",
        '"logs", task, "--allocation-id"',
    ),
    ("tensorboard logs", "--allocation-id"): (
        "tests/e2e/experiments/test_tasks.py",
        '"logs", task, "--allocation-id"',
    ),
    ("tensorboard open", ""): ("tests/e2e/experiments/test_tasks.py", '"tensorboard", "open", task'),
    ("experiment continue", "-f"): ("tests/e2e/experiments/test_continue.py", '*longer, "--yes", "-f"'),
}
"""What needs trials that run, and the tests that have some, with words of theirs."""


DOCUMENTED = cli_lists.documented()
SAME = {
    (item.path, item.options)
    for item in cli_lists.documented_items()
    if item.support is cli_lists.Support.SAME and item.path.split()[-1] != "help"
}
"""Each command or option that is the same: the command's path, and the option's names."""


class Det:
    """Runs command lines that must succeed, and notes what of the lists they use."""

    def __init__(self, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run = run
        self._monkeypatch = monkeypatch
        self.used: set[tuple[str, tuple[str, ...]]] = set()

    def __call__(self, line: str, *more: object, answer: str = "") -> str:
        """Runs a line and returns what it printed; further words may have blanks."""
        words = [*line.split(), *map(str, more)]
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        outcome = self.run(*words)
        assert outcome.code == 0, (words, outcome.err)
        self._note(words)
        return outcome.out

    def fails(self, line: str) -> str:
        """Runs a line that must fail, and returns what it said."""
        outcome = self.run(*line.split())
        assert outcome.code != 0, outcome.out
        return outcome.err

    def json(self, line: str, *more: object) -> Any:
        """Runs a line that prints JSON."""
        return json.loads(self(line, *more))

    def _note(self, words: list[str]) -> None:
        def matches(one: Any) -> bool:
            return all(word in names for word, names in zip(words, one.words, strict=False))

        known = [one for one in DOCUMENTED if len(one.words) <= len(words) and matches(one)]
        depth = max(len(one.words) for one in known)
        for one in known:
            if len(one.words) == depth:
                self.used.add((one.path, ()))
                for option in one.options:
                    names = tuple(name.rstrip("=") for name in option)
                    if set(names) & set(words[depth:]):
                        self.used.add((one.path, names))


def users(det: Det) -> None:
    det("user create grace --admin")
    det("user change-password grace --password-stdin", answer="navy cobol\n")
    assert det("user login grace --password-stdin", answer="navy cobol\n").endswith("as grace\n")
    assert det("user whoami") == "grace\n"
    det("user logout")


def accounts(det: Det) -> None:
    det("user create hopper")
    assert det("user rename hopper rear-admiral") == "user hopper is called rear-admiral\n"
    det("user edit rear-admiral --username hopper --active true")
    det("user deactivate hopper")
    assert "hopper" not in det("user list")
    assert "hopper" in det("user list --all")
    det("user activate hopper")
    made = det.json("token create hopper --description notebook --json")
    other = yaml.safe_load(det("token create hopper -d another --yaml"))
    assert det.json("token describe --json", made["id"])[0]["description"] == "notebook"
    assert yaml.safe_load(det("token describe --yaml", made["id"]))[0]["username"] == "hopper"
    listed = {one["id"] for one in det.json("token list hopper --json")}
    assert listed == {made["id"], other["id"]}
    assert {one["id"] for one in yaml.safe_load(det("token list hopper --yaml"))} == listed
    assert det.json("token edit --json --description", "laptop", made["id"])["description"] == "laptop"
    assert yaml.safe_load(det("token edit --yaml -d", "desk", made["id"]))["description"] == "desk"
    det("token revoke", made["id"])


def roles(det: Det, tenant: Tenant) -> None:
    where = f"-w {tenant.name}"
    det(f"rbac assign-role Editor -u hopper {where}")
    granted = {"role": "Editor", "workspace": tenant.name}
    assert granted in det.json("rbac list-users-roles hopper --json")
    det(f"rbac unassign-role Editor -u hopper {where}")
    assert granted not in det.json("rbac list-users-roles hopper --json")
    assert det.json("rbac describe-role Viewer --json")
    assert det.json("rbac my-permissions --json")
    names = [one["role"] for one in det.json("rbac list-roles --json --pages all")]
    shown = det.json("rbac list-roles --exclude-global-roles --limit 1 --offset 1 --json")
    assert len(shown) == 1
    assert shown[0]["role"] in names


def workspaces(det: Det) -> None:
    assert det.json("workspace create lab --json")["name"] == "lab"
    assert det.json("workspace edit lab --name works --json")["name"] == "works"
    assert det.json("workspace describe works --json")["workspace"]["name"] == "works"
    names = [one["name"] for one in det.json("workspace list --sort-by name --order-by desc --json")]
    assert names == sorted(names, reverse=True)
    assert len(det.json("workspace list --limit 1 --offset 1 --json")) == 1
    assert isinstance(det.json("workspace list-members works --json"), list)
    assert isinstance(yaml.safe_load(det("workspace list-members works --yaml")), list)
    det("workspace list-members works --csv")
    det.json("project create works cats --json --description", "whiskers and tails")
    det("project create works bees")
    edited = det.json("project edit works cats --new_name felines --description x --json")
    assert (edited["name"], edited["description"]) == ("felines", "x")
    for command in ("project list works", "workspace list-projects works"):
        found = det.json(f"{command} --sort-by name --order-by desc --json")
        assert [one["name"] for one in found] == ["felines", "bees"]
        assert [one["name"] for one in det.json(f"{command} --limit 1 --offset 1 --json")] != []
    det("project archive works bees")
    det("project unarchive works bees")
    det("project delete --yes works bees")
    det("workspace archive works")
    det("workspace unarchive works")


def policies(det: Det, folder: Path) -> None:
    (folder / "policies.yaml").write_text(
        "invariant_config: {max_restarts: 2}\nconstraints: {priority_limit: 10}\n"
    )
    for scope in ("", "-w works"):
        det(f"config-policies set experiment {scope}", folder / "policies.yaml")
        shown = {"invariant_config": {"max_restarts": 2}, "constraints": {"priority_limit": 10}}
        assert det.json(f"config-policies describe experiment --json {scope}") == shown
        assert yaml.safe_load(det(f"config-policies describe experiment --yaml {scope}")) == shown
        det(f"config-policies delete experiment {scope}")
        assert det.json(f"config-policies describe experiment --json {scope}") == {}
    assert "those for experiments apply to them" in det.fails("config-policies describe tasks")


def state_of(det: Det, number: int) -> str:
    return str(det.json(f"experiment describe {number} --json")[0]["experiment"]["state"])


def is_canceled(det: Det, number: int) -> bool:
    return state_of(det, number) == "CANCELED"


def experiments(det: Det, code: Path, folder: Path) -> None:
    (folder / "template.yaml").write_text("description: templated\n")
    (folder / "more").write_text("more\n")
    (folder / "longer.yaml").write_text("max_restarts: 1\n")
    det("template create base", folder / "template.yaml")
    det("template set base", folder / "template.yaml")
    assert "templated" in det("template describe base")
    assert "templated" in det("template list --details")
    project = det.json("project describe works felines --all --json")["project"]["id"]
    first = det.json(
        f"experiment create --paused --project_id {project} --template base --config name=mine --json",
        *("-i", folder / "more", code / "const.yaml", code),
    )["id"]
    assert yaml.safe_load(det(f"experiment config {first}"))["description"] == "templated"
    for command in ("experiment activate", "experiment pause", "experiment set name {} ours"):
        det(command.format(first) if "{}" in command else f"{command} {first}")
    det(f"experiment set description {first}", "about it")
    det(f"experiment set priority {first} 41")
    det(f"experiment set weight {first} 2")
    det(f"experiment set max-slots {first} 3")
    det(f"job update {first} --priority 40 --weight 3")
    det(f"experiment label add {first} good")
    det(f"experiment label remove {first} good")
    assert len(det.json("job list --json --reverse --limit 1 --offset 0 --pages 1")) == 1
    assert len(yaml.safe_load(det("job list --yaml --pages all"))) >= 1
    assert len(det("job list --csv").splitlines()) > 1
    kept = "--save-experiment-best 0 --save-trial-best 1 --save-trial-latest 1"
    det(f"experiment set gc-policy {first} {kept} --yes")
    det(f"experiment download-model-def {first} --output-dir", folder / "definition")
    assert list((folder / "definition").iterdir())
    listed = det.json("project list-experiments works felines --all --json --sort-by id --order-by desc")
    assert [one["id"] for one in listed] == [first]
    assert det.json("project list-experiments works felines --limit 1 --offset 1 --json") == []
    det(f"experiment kill {first}")
    wait_until(lambda: state_of(det, first) == "CANCELED", what="the end of the experiment")
    (events := tensorboard_files(det, first)).mkdir(parents=True)
    (events / "events.out.tfevents.1").write_text("event")
    det(f"experiment delete-tb-files {first}")
    (tree := events.parent.parent).symlink_to(folder)
    assert "through a link" in det.fails(f"experiment delete-tb-files {first}")
    tree.unlink()
    rows = json.loads(det.run("audit", "--json", "--resource", f"experiment {first}").out)
    # Also what failed is there: it may have removed some.
    assert [row["action"] for row in rows].count("delete_tensorboard_files") == 2
    det(f"experiment move {first} Uncategorized Uncategorized")
    det("project delete --yes works felines")
    det("workspace delete --yes works")
    det(f"experiment continue {first} --yes --config max_restarts=2 --config-file", folder / "longer.yaml")
    det(f"experiment cancel {first}")
    det("template remove base")
    (events := tensorboard_files(det, first)).mkdir(parents=True)
    lists = [
        len(det("experiment list --csv --all --show_project --pages all").splitlines()),
        len(det("experiment list --csv --limit 2 --offset 1").splitlines()),
    ]
    assert lists == [6, 3]
    wait_until(lambda: state_of(det, first) == "CANCELED", what="the end of the experiment")
    det(f"experiment delete {first} --yes")
    wait_until(lambda: not events.exists(), what="the removal of TensorBoard files")


def tensorboard_files(det: Det, number: int) -> Path:
    """Where a trial of an experiment keeps its TensorBoard files."""
    storage = yaml.safe_load(det(f"experiment config {number}"))["checkpoint_storage"]
    cluster = det.json("master info --json")["cluster_id"]
    root: str = storage["host_path"] or storage["container_path"]
    return Path(root, storage["storage_path"] or "", cluster, f"tensorboard/experiment/{number}/trial/1")


def trials(det: Det, tenant: Tenant, done: Tenant, folder: Path) -> None:
    trial, whole = tenant.trial_number, done.trial_experiment_id
    lines = "--head 9 --level INFO --rank-id 0 --source task --stdtype stdout --json"
    times = "--tail 9 --agent-id a --container-id c --timestamp-before 2030-01-01T00:00:00Z"
    for command in (f"trial logs {trial}", f"task logs {trial}", f"experiment logs {whole}"):
        assert "hello" in det(command)
        det(f"{command} {lines}")
        det(f"{command} {times} --timestamp-after 2020-01-01T00:00:00Z")
    det(f"task logs {trial} --allocation-id {tenant.allocation_id}")
    for command in ("trial logs", "task logs"):
        assert "hello" in det(f"{command} {done.trial_number} -f")
    assert "hello" in det(f"experiment logs {whole} -f")
    assert isinstance(det.json("task list --json"), list)
    assert det("task list --csv")
    described = det.json(f"trial describe {trial} --json --metrics --metrics-summary")
    assert described[0]["trial"]["id"] == trial
    det(f"trial describe {trial} --csv --limit 1 --offset 0 --pages 1")
    described = det.json(f"experiment describe {whole} --json --metrics")
    assert described[0]["experiment"]["state"] == "COMPLETED"
    assert det(f"experiment describe {whole} --csv")
    det(f"experiment describe {whole} --outdir", folder / "described")
    assert len(det(f"experiment list-trials {whole} --csv --pages all").splitlines()) == 2
    assert len(det(f"experiment list-trials {whole} --csv --limit 1 --offset 1").splitlines()) == 1
    assert tenant.checkpoint_id not in det(f"experiment list-checkpoints {whole} --best 1 --csv")
    sorting = "--sort-by loss --smaller-is-better true"
    downloads = [
        f"experiment download {whole} --top-n 1 {sorting} -q",
        f"trial download {trial} --best {sorting} -q",
        f"trial download {trial} --latest",
        f"trial download {trial} --uuid {tenant.checkpoint_id}",
        f"checkpoint download {tenant.checkpoint_id} -q",
    ]
    for number, command in enumerate(downloads):
        det(f"{command} -o", folder / f"download{number}")
        assert [path.read_text() for path in (folder / f"download{number}").rglob("weights")] == ["weights"]
    det(f"trial support-bundle {trial} -o", folder)
    det(f"experiment wait {whole}")


def tasks(det: Det, tenant: Tenant, folder: Path) -> None:
    det("agent disable --all")  # so that they wait, and nothing runs
    (folder / "task.yaml").write_text("resources: {slots_per_trial: 1}\n")
    (code := folder / "task").mkdir()
    det("template create small", folder / "task.yaml")
    given = ["--config-file", folder / "task.yaml", "--config", "max_restarts=3", "-w", tenant.name]
    more = [*given, "-c", code, "-i", folder / "more"]
    det("command run -d --template small", *more, "echo", "hello")
    det("tensorboard start -d", *more, tenant.experiment_number)
    assert "Name an experiment" in det.fails("tensorboard start -d")
    for kind in ("command", "tensorboard"):
        (task,) = det.json(f"{kind} list --all --sort-by startTime --order-by desc --json")
        assert det(f"{kind} list -q -w {tenant.name}") == f"{task['id']}\n"
        assert det(f"{kind} list --csv").startswith("id,")
        config = yaml.safe_load(det(f"{kind} config {task['id']}"))
        assert (config["max_restarts"], config["workspace"]) == (0, tenant.name), "a task begins once"
        det(f"{kind} set priority {task['id']} 9")
        assert {job["experiment_id"]: job["priority"] for job in det.json("job list --json")}[task["id"]] == 9
        lines = "--head 9 --level INFO --rank-id 0 --source task --stdtype stdout --json"
        times = "--tail 9 --agent-id a --container-id c --timestamp-before 2030-01-01T00:00:00Z"
        det(f"{kind} logs {task['id']} {lines} --timestamp-after 2020-01-01T00:00:00Z")
        det(f"{kind} logs {task['id']} {times}")
        assert "no allocation" in det.fails(f"{kind} logs {task['id']} --allocation-id x")
        assert "is no" in det.fails(f"{kind} kill {tenant.experiment_number}")
        det(f"{kind} kill -f {task['id']} {tenant.experiment_number}")
        wait_until(partial(is_canceled, det, task["id"]), what="the end of the task")
        det(f"{kind} logs {task['id']} -f")
    (shown,) = det.json(f"command describe {det('command list -q').strip()} --json")
    assert shown["description"] == "Command (echo hello)"
    det(f"command describe {shown['id']} --csv")
    det("template remove small")
    det("agent enable --all")


def models(det: Det, tenant: Tenant) -> None:
    assert det.json(f"model create net --description d -w {tenant.name} --json")["name"] == "net"
    assert det.json(f"model register-version net {tenant.checkpoint_id} --json")
    assert det.json("model describe net --version 1 --json")
    assert len(det.json("model list-versions net --json")) == 1
    assert det.json(f"model list -w {tenant.name} --sort-by name --order-by desc --json")
    det("model move net -w Uncategorized")
    det("model delete net", answer="y\n")


def machines(det: Det) -> None:
    for command in ("agent disable 0 --drain", "slot disable 0 0", "agent list", "slot list"):
        assert isinstance(det.json(f"{command} --json"), list)
        det(f"{command} --csv")
    det("agent disable --all")
    assert all(slot["disabled"] for slot in det.json("slot list --json"))
    assert "enabled: slot 0 of pool default\n" in det("slot enable 0 0")
    det("agent enable 0")
    det("agent enable --all")
    assert not any(slot["disabled"] for slot in det.json("slot list --json"))
    assert "no machine 7 in pool 'default'" in det.fails("agent disable 7")
    assert "Machine 0 of pool 'default' has no slot 4000" in det.fails("slot enable 0 4000")
    assert "with --all" in det.fails("agent disable")
    shown = det.json("master config show --json")
    assert shown == yaml.safe_load(det("master config show --yaml"))
    assert shown["preemption_timeout"] == 3600.0
    det("master logs --tail 5")
    assert det.json("master info --json") == yaml.safe_load(det("master info --yaml"))
    assert "cluster" in det("version")


def ends(det: Det, tenant: Tenant, done: Tenant) -> None:
    det("model delete", tenant.model_name, answer="y\n")
    det(f"checkpoint rm {tenant.checkpoint_id} --glob weights --yes")
    det(f"checkpoint delete {tenant.checkpoint_id} --yes")
    det(f"trial kill {tenant.trial_number}")
    det(f"experiment archive {done.trial_experiment_id}")
    det(f"experiment unarchive {done.trial_experiment_id}")
    det("model delete", done.model_name, answer="y\n")
    det(f"experiment delete {done.trial_experiment_id} --yes")


async def complete(platform: Tenants, tenant: Tenant) -> None:
    """Ends the run of a tenant well."""
    async with platform.stub(TrialsServiceStub, User("admin", Role.ADMIN, 1)) as stub:
        await stub.EndRun(
            trials_service_pb2.EndRunRequest(
                trial_id=tenant.trial_id, run=1, outcome=run_pb2.RUN_OUTCOME_COMPLETED
            )
        )


def test_every_command_that_is_the_same_works(
    home: Path, code: Path, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    det = Det(resolute, monkeypatch)
    (code / "const.yaml").write_text(
        "{name: digits, entrypoint: x, searcher: {name: single, metric: loss, max_length: {batches: 1}}}"
    )

    def script(alpha: Tenant, beta: Tenant) -> None:
        accounts(det)
        roles(det, alpha)
        workspaces(det)
        policies(det, tmp_path)
        experiments(det, code, tmp_path)
        trials(det, alpha, beta, tmp_path)
        tasks(det, alpha, tmp_path)
        models(det, alpha)
        machines(det)
        users(det)
        ends(det, alpha, beta)

    async def scenario() -> None:
        async with tenants(tmp_path / "services") as platform:
            await complete(platform, platform.beta)
            token = platform.running.signer.user(User("admin", Role.ADMIN, 1), ttl=3600.0)
            (home / "token").write_text(token)
            endpoint = {"address": platform.running.address, "token_path": str(home / "token")}
            (home / "endpoint.json").write_text(json.dumps({**endpoint, "cluster_id": "", "pid": 1}))
            await asyncio.to_thread(script, platform.alpha, platform.beta)

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        asyncio.run(scenario())
    finally:
        plain_logs()
    elsewhere = {
        (path, names) for path, names in SAME for name in names or ("",) if (path, name) in ELSEWHERE
    }
    assert len(elsewhere) == len(ELSEWHERE)
    assert SAME - det.used == elsewhere
    for file, words in ELSEWHERE.values():
        assert words in (ROOT / file).read_text(), file
