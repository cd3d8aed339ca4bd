"""A machine's own metadata server says that the machine is about to be taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised
from support.daemons.metadata_server import metadata_server
from support.ports import free_port
from wire.launch.test_run_endings import COOPERATIVE

from resolute.api.preemption.v1.signal_pb2 import SIGNAL_REASON_MACHINE

FILES = {"good.py": COOPERATIVE}
UNTIL_TOLD = "echo training; while [ ! -e {path} ]; do sleep 0.05; done"


def preemptible(url: str, *, enabled: bool = True, **probe: Any) -> dict[str, Any]:
    """A config as the services store it."""
    defaults = {"headers": {}, "status": 200, "contains": "", "interval": 1, "timeout": 2}
    return {"resources": {"preemptible": {"enabled": enabled, "metadata": {"url": url, **defaults, **probe}}}}


def test_a_notice_has_the_run_checkpoint_and_leave(tmp_path: Path) -> None:
    with (
        metadata_server() as machine,
        control_plane(["python3", "good.py"], files=FILES, config=preemptible(machine.url)) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text() and machine.requests)
        machine.status = 200
        plane.wait_for(lambda: plane.exits)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert (exit_.exit_code, exit_.acknowledged, exit_.failure) == (0, True, "")
        assert plane.preemptions == [SIGNAL_REASON_MACHINE]
        assert f"{machine.url} says that this machine is about to be taken away" in plane.text(stdtype="")
        assert {path for path, _ in machine.requests} == {"/spot?recursive=true"}


def test_headers_are_sent_and_only_the_text_that_is_looked_for_is_a_notice(tmp_path: Path) -> None:
    with metadata_server() as machine:
        machine.status, machine.body = 200, "FALSE"
        config = preemptible(machine.url, headers={"Metadata-Flavor": "Google"}, contains="TRUE")
        with (
            control_plane(["python3", "good.py"], files=FILES, config=config) as plane,
            supervised(tmp_path, plane) as run,
        ):
            plane.wait_for(lambda: "training" in plane.text() and len(machine.requests) >= 2)
            assert plane.preemptions == []
            machine.body = "TRUE"
            plane.wait_for(lambda: plane.exits)
            assert run.wait() == 0
            assert plane.preemptions == [SIGNAL_REASON_MACHINE]
            assert all(headers["Metadata-Flavor"] == "Google" for _, headers in machine.requests)


def test_a_server_that_says_so_from_the_beginning_ends_no_run(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with metadata_server() as machine:
        machine.status = 200
        with (
            control_plane(UNTIL_TOLD.format(path=done), config=preemptible(machine.url)) as plane,
            supervised(tmp_path, plane) as run,
        ):
            plane.wait_for(lambda: "training" in plane.text() and len(machine.requests) >= 3)
            done.touch()
            assert run.wait() == 0
            assert (plane.exits[0].exit_code, plane.preemptions) == (0, [])
            warnings = [line for line in plane.text(stdtype="") if "announced from the beginning" in line]
            assert len(warnings) == 1


def test_who_does_not_answer_is_named_once_and_the_run_goes_on(tmp_path: Path) -> None:
    done = tmp_path / "done"
    url = f"http://127.0.0.1:{free_port()}/spot"
    with (
        control_plane(UNTIL_TOLD.format(path=done), config=preemptible(url)) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: any(f"{url} does not answer" in line for line in plane.text(stdtype="")))
        done.touch()
        assert run.wait() == 0
        assert (plane.exits[0].exit_code, plane.preemptions) == (0, [])
        assert sum("does not answer" in line for line in plane.text(stdtype="")) == 1


def test_nobody_is_asked_where_machines_stay(tmp_path: Path) -> None:
    with (
        metadata_server() as machine,
        control_plane("sleep 1.5", config=preemptible(machine.url, enabled=False)) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        assert machine.requests == []
