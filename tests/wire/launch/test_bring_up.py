"""From the launch order to the first line, and what can go wrong on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import control_plane, pack
from support.clusters.supervisors import supervised

from resolute.contracts.files.atomic_files import read_json

SHARED = "a key that the containers of a run share"
DUMP = """
import json, os, sys
from pathlib import Path
info = Path(os.environ["RESOLUTE_INFO_DIR"])
print(json.dumps({
    "env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "files": sorted(os.listdir(".")),
    "info": {p.stem: json.loads(p.read_text()) for p in info.glob("*.json")},
    "fds": [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")],
    "key": os.environ.get("RESOLUTE_COLLECTIVE_KEY", "")[::-1],
    "scratch": os.path.isdir(os.environ["TMPDIR"]), "session": os.getsid(0) == os.getpid(),
    "stdin": os.readlink("/proc/self/fd/0"),
}))
"""


def dumped(tmp_path: Path, entrypoint: Any, files: dict[str, str], **options: Any) -> dict[str, Any]:
    environ = options.pop("environ", None)
    order = options.pop("order", {})
    with (
        control_plane(entrypoint, files={"dump.py": DUMP, **files}, **options) as plane,
        supervised(tmp_path, plane, environ=environ, **order) as run,
    ):
        assert run.wait() == 0, run.log()
        assert run.record().failure == ""
        found: dict[str, Any] = json.loads("".join(plane.text(stdtype="stdout")))
        return found


def test_the_entrypoint_finds_its_code_and_the_documented_environment(tmp_path: Path) -> None:
    found = dumped(
        tmp_path,
        ["python3", "dump.py", "a b"],
        {"pkg/mod.py": ""},
        latest_checkpoint_id="ckpt-1",
        steps_completed=30,
        environ={"DET_STALE": "outer", "RESOLUTE_RUN_DIR": "/outer", "MINE": "kept"},
    )
    run = tmp_path / "run" / "0"
    env = found["env"]
    assert found["files"] == ["dump.py", "pkg"]
    assert found["argv"] == ["dump.py", "a b"]
    assert found["cwd"] == str(run / "work")
    assert env["DET_TRIAL_ID"] == "12"
    assert env["DET_EXPERIMENT_ID"] == "7"
    assert env["DET_ALLOCATION_ID"] == "allocation-1"
    assert json.loads(env["DET_HPARAMS"]) == {"lr": 0.1, "layers": 2}
    assert json.loads(env["DET_SLOT_IDS"]) == [0]
    assert env["DET_LATEST_CHECKPOINT"] == "ckpt-1"
    assert env["DET_STEPS_COMPLETED"] == env["DET_LATEST_BATCH"] == "30"
    assert env["FROM_CONFIG"] == "yes"
    assert env["MINE"] == "kept"
    assert "DET_STALE" not in env
    assert env["RESOLUTE_RUN_DIR"] == str(run)
    assert (Path(env["PYTHONPATH"].split(":")[0]) / "determined").is_dir()
    # It is there, which only its reverse can tell: anyone who prints it shows it to nobody.
    assert len(found["key"]) == 32
    assert env["RESOLUTE_COLLECTIVE_KEY"] == "***"
    assert len(env["RESOLUTE_COLLECTIVE_PORTS"].split(",")) == 2
    # Temporary files have a place of their own, which goes with the run.
    assert found["scratch"]
    assert not Path(env["TMPDIR"]).exists()
    assert "CUDA_VISIBLE_DEVICES" not in env or env["CUDA_VISIBLE_DEVICES"] == ""


def test_the_entrypoint_inherits_nothing_of_the_supervisor(tmp_path: Path) -> None:
    found = dumped(tmp_path, ["python3", "dump.py"], {})
    names = [Path(fd).name for fd in found["fds"] if not fd.startswith("/proc/")]
    assert sorted(names) == ["null", "stacks", "stderr", "stdout"]
    assert found["session"]
    assert found["stdin"] == "/dev/null"


def test_the_info_files_say_what_the_trial_may_know(tmp_path: Path) -> None:
    info = dumped(tmp_path, ["python3", "dump.py"], {}, time_driven=True)["info"]
    assert info["cluster"]["task_type"] == "TRIAL"
    assert info["cluster"]["slot_ids"] == [0]
    assert info["trial"]["hparams"] == {"lr": 0.1, "layers": 2}
    assert info["trial"]["config"]["entrypoint"] == ["python3", "dump.py"]
    assert info["trial"]["trial_seed"] == 42
    assert info["rendezvous"] == {
        "container_addrs": ["127.0.0.1"],
        "container_rank": 0,
        "container_slot_counts": [1],
    }
    assert info["resources"] == {"gpu_uuids": []}
    ours = info["cluster"]["resolute"]
    assert ours["run"] == 1
    assert ours["time_driven"]
    assert ours["searcher_metric"] == "loss"
    # A slow machine renews its lease more often until the run has ended.
    assert re.fullmatch(r"token-([2-9]|\d\d+)", Path(ours["token_path"]).read_text())


def test_the_software_of_a_run_is_recorded_while_it_runs(tmp_path: Path) -> None:
    wait = "while not os.path.exists('go'): time.sleep(0.05)"
    with (
        control_plane(["python3", "wait.py"], files={"wait.py": f"import os, time\n{wait}\n"}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.environments)
        (tmp_path / "run" / "0" / "work" / "go").touch()
        assert run.wait() == 0, run.log()
        (found,) = plane.environments
    assert "grpcio" in {package.name for package in found.packages}
    assert found.python_version


def test_gpu_slots_are_the_devices_that_the_trial_sees(tmp_path: Path) -> None:
    order = {"slot_kind": "gpu", "devices": ("GPU-a", "GPU-b"), "slot_ids": (0, 1)}
    found = dumped(tmp_path, ["python3", "dump.py"], {}, order=order)
    assert found["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert found["info"]["resources"] == {"gpu_uuids": ["GPU-a", "GPU-b"]}


def test_text_is_run_by_a_shell(tmp_path: Path) -> None:
    found = dumped(tmp_path, "X='1 2'; python3 dump.py $X \"$X\" && true", {})
    assert found["argv"] == ["dump.py", "1", "2", "1 2"]


def test_what_the_hook_exports_changes_and_limits_reaches_the_entrypoint(tmp_path: Path) -> None:
    hook = "export FROM_HOOK='it''s here'; FROM_CONFIG=changed; set -- gone; cd sub; ulimit -n 123\n"
    with (
        control_plane(
            "echo $FROM_HOOK $FROM_CONFIG $(basename $PWD) $(ulimit -n)",
            files={"startup-hook.sh": hook, "sub/x": ""},
        ) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        assert plane.text() == ["its here changed sub 123"]


def test_the_hook_cannot_swallow_the_gate(tmp_path: Path) -> None:
    files = {"startup-hook.sh": "cat; read -r line || true; echo hooked\n"}
    with control_plane("echo ran", files=files) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert plane.text() == ["hooked", "ran"]


@pytest.mark.parametrize(
    ("hook", "failure"),
    [
        ("echo installing; echo 'no such package' >&2; false; echo never", "exit code 1.*no such package"),
        ("exit 3", "exit code 3"),
        ("exit 0", "use 'return' instead"),
        ("kill -9 $$", "exit code 137"),
        ("if then", "syntax error"),
    ],
)
def test_a_hook_that_fails_ends_the_run_before_its_entrypoint(
    tmp_path: Path, hook: str, failure: str
) -> None:
    with (
        control_plane("echo ran", files={"startup-hook.sh": hook}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code != 0
        assert exit_.failed_before_entrypoint
        assert "startup-hook.sh" in exit_.failure
        assert re.search(failure, exit_.failure, re.DOTALL)
        assert "ran" not in plane.text()


@pytest.mark.parametrize(
    ("entrypoint", "files", "failure"),
    [
        (None, {}, "entrypoint is None"),
        ("", {}, "entrypoint is ''"),
        ([], {}, r"entrypoint is \[\]"),
    ],
)
def test_an_entrypoint_that_cannot_run_says_why(
    tmp_path: Path, entrypoint: Any, files: dict[str, str], failure: str
) -> None:
    with control_plane(entrypoint, files=files) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.failed_before_entrypoint
        assert re.search(failure, exit_.failure)
        # People see it in the log of the trial as well.
        assert any(re.search(failure, line) for line in plane.text(stdtype=""))


def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    with control_plane(["no-such-command", "x"]) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 127
        assert not exit_.failed_before_entrypoint
        assert "command not found" in exit_.failure
        assert "no-such-command" in exit_.failure


def test_code_that_would_leave_its_directory_is_not_unpacked(tmp_path: Path) -> None:
    with control_plane("echo ran", files={"../evil.py": ""}) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert "'../evil.py'" in plane.exits[0].failure
        assert not list(tmp_path.rglob("evil.py"))


def test_code_that_was_damaged_on_the_way_is_not_run(tmp_path: Path) -> None:
    with control_plane("echo ran", files={"a.py": ""}) as plane:
        plane.archive = pack({"b.py": ""})
        with supervised(tmp_path, plane) as run:
            assert run.wait() == 0
            assert "SHA-256" in plane.exits[0].failure
            assert plane.calls.count("GetModelDefinition") == 3
            assert plane.text(stdtype="stdout") == []


def test_containers_of_a_run_meet_after_their_hooks(tmp_path: Path) -> None:
    files = {
        "dump.py": DUMP,
        "startup-hook.sh": 'test ! -e "$RESOLUTE_INFO_DIR/rendezvous.json" && export HOOKED=1\n',
    }
    with (
        control_plane(["python3", "dump.py"], files=files, container_count=2, collective_key=SHARED) as plane,
        supervised(tmp_path, plane, container_rank=1, slot_ids=(2, 3), agent_id="m2") as second,
    ):
        plane.wait_for(lambda: 1 in plane.announced)
        with supervised(tmp_path, plane, container_rank=0, slot_ids=(0,), agent_id="m1") as first:
            assert first.wait() == 0, first.log()
            assert second.wait() == 0, second.log()
        found = {}
        for line in plane.all_lines():
            found[line.container] = json.loads(line.message)
            assert line.agent == {"0": "m1", "1": "m2"}[line.container]
        assert found["0"]["env"]["HOOKED"] == found["1"]["env"]["HOOKED"] == "1"
        assert found["0"]["info"]["rendezvous"]["container_slot_counts"] == [1, 2]
        assert found["1"]["info"]["rendezvous"]["container_rank"] == 1
        # All use the ports of the first, and one secret.
        ports = [str(port) for port in plane.announced[0].ports]
        for rank in "01":
            assert found[rank]["env"]["RESOLUTE_COLLECTIVE_PORTS"] == ",".join(ports[:2])
            assert found[rank]["env"]["C10D_PORT"] == ports[2]
            each = ",".join(str(plane.announced[container].ports[3]) for container in (0, 1))
            assert found[rank]["env"]["RESOLUTE_CONTAINER_PORTS"] == each
            assert found[rank]["key"] == SHARED[::-1]
            assert found[rank]["env"]["RESOLUTE_COLLECTIVE_KEY"] == "***"


def test_a_container_whose_peers_do_not_come_names_them(tmp_path: Path) -> None:
    with (
        control_plane("echo ran", container_count=3) as plane,
        supervised(tmp_path, plane, container_rank=1, rendezvous_timeout_seconds=0.5) as run,
    ):
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.failed_before_entrypoint
        assert "these ranks were missing: 0, 2" in exit_.failure


def test_a_config_too_large_for_the_environment_still_starts(tmp_path: Path) -> None:
    config = {"data": {"list": ["x" * 100] * 2000}}
    found = dumped(tmp_path, ["python3", "dump.py"], {}, config=config)
    assert "DET_EXPERIMENT_CONFIG" not in found["env"]
    assert len(found["info"]["trial"]["config"]["data"]["list"]) == 2000


def test_the_order_of_a_run_holds_a_token_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    with control_plane("true") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        for file in (run.run.launch_file, run.run.token_file):
            assert file.stat().st_mode & 0o077 == 0
        assert read_json(run.run.supervisor_file)
