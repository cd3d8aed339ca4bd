"""`make compose-demo`: the compose file with real containers, and the end of all of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.backends import missing
from support.daemons.containers import Podman
from support.pages.commands import ROOT
from support.waiting import wait_until

_PROGRAM = ROOT / "tools/compose_demo/run.py"
_PYTHON = ROOT / ".cache/compose-demo/bin/python"
_SECONDS = 1800.0
_TERMINATED = 143

_PORTS = {
    "experiments": 8081,
    "searcher": 8082,
    "metrics": 8083,
    "logs": 8084,
    "checkpoints": 8085,
    "preemption": 8086,
}
_CONNECT = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

def reached(address):
    try:
        socket.create_connection(address, 5).close()
    except OSError:
        return False
    return True

wanted = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(wanted)) as pool:
    print(json.dumps(dict(zip(wanted, pool.map(reached, map(tuple, wanted.values()))))))
"""

pytestmark = pytest.mark.usefixtures("images")


@pytest.fixture(scope="module")
def best_of_make_demo() -> Path:
    """What `make demo` found, which is run unless it was."""
    found = ROOT / "build/resolute-demo/best.json"
    if not found.exists():
        program = Path(sys.executable).with_name("resolute")
        subprocess.run([program, "demo", ROOT / "build/resolute-demo"], check=True, timeout=_SECONDS)
    return found


@contextmanager
def _demonstration(podman: Podman) -> Iterator[subprocess.Popen[str]]:
    """Runs it as `make compose-demo` does, and ends it with the block; it must leave nothing."""
    if not _PYTHON.exists():
        missing(f"{_PYTHON} is not here: `make compose-demo` makes it, and `make images`")
    process = subprocess.Popen(
        [str(_PYTHON), str(_PROGRAM)],
        env={**podman.environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=_SECONDS)
    assert not _left(podman)


def _left(podman: Podman) -> list[str]:
    """What is there of a demonstration, and of the runs of trials of its cluster."""
    listings = (("ps", "--all", "--format={{.Names}}"), ("volume", "ls", "--format={{.Name}}"))
    listed = [*listings, ("network", "ls", "--format={{.Name}}")]
    return [
        name
        for listing in listed
        for name in podman.run(*listing).split()
        if name.startswith("resolute-demo-")
    ]


def test_the_search_of_make_demo_finds_the_same_best_trial_on_the_compose_file(
    podman: Podman, best_of_make_demo: Path
) -> None:
    with _demonstration(podman) as process:
        reached = _reached_by_a_trial(podman, process)
        said, _ = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, said[-6000:]
    assert {name for name, there in reached.items() if there} == {"gateway", "store"}
    assert len(reached) == len(_PORTS) + 2 + 2, "two services are in a second network"
    assert "16 of 16 done" in said
    assert "The best trial is that of `make demo`" in said
    assert (ROOT / "build/compose-demo/best.json").read_text() == best_of_make_demo.read_text()
    assert (ROOT / "build/compose-demo/best/model.pt").is_file()


def test_no_password_and_no_key_is_in_what_a_demonstration_leaves_or_tells(podman: Podman) -> None:
    secrets: list[str] = []
    with _demonstration(podman) as process:
        store = _container(podman, process, service="store")
        keys = podman.run("exec", store, "cat", "/run/store/keys.env")
        secrets += [line.partition("=")[2] for line in keys.split()]
        shown = podman.run("inspect", store) + podman.run("top", store, "args")
        shown += "".join(_arguments(path) for path in Path("/proc").iterdir() if path.name.isdigit())
        assert len(secrets) == 2
        assert not [secret[:4] for secret in secrets if secret in shown]
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=_SECONDS)
    assert process.returncode == _TERMINATED, said[-6000:]
    folder = ROOT / "build/compose-demo"
    texts = [said, *(path.read_text(errors="replace") for path in folder.rglob("*.log"))]
    assert not [secret[:4] for secret in secrets for text in texts if secret in text]


def _reached_by_a_trial(podman: Podman, process: subprocess.Popen[str]) -> dict[str, bool]:
    """Has a trial connect to all addresses of each service, and to what gateway and store have open."""
    store = _container(podman, process, service="store")
    gateway = _container(podman, process, service="gateway")
    settings = podman.run("exec", gateway, "cat", "/etc/resolute/cluster.env")
    cluster = settings.strip().removeprefix("RESOLUTE_CLUSTER_ID=")
    wanted = {
        f"{name} at {address}": (address, port)
        for name, port in _PORTS.items()
        for address in _addresses(podman, _container(podman, process, service=name))
    }
    for name, container, port in (("gateway", gateway, "8080"), ("store", store, "9000")):
        address, _, opened = podman.run("port", container, port).strip().rpartition(":")
        wanted[name] = (address, int(opened))

    def told() -> str | None:
        assert process.poll() is None, process.communicate()[0][-6000:]
        for trial in podman.run("ps", "--quiet", f"--filter=label=resolute.cluster={cluster}").split():
            # It may end before it is asked; there are others.
            asked = ["podman", "exec", trial, "python3", "-c", _CONNECT, json.dumps(wanted)]
            if answer := podman.command(asked, check=False):
                return answer
        return None

    answer = wait_until(told, what="a trial to connect", seconds=_SECONDS, pause=0.5)
    assert answer is not None
    reached: dict[str, bool] = json.loads(answer)
    return reached


def _addresses(podman: Podman, container: str) -> list[str]:
    networks = json.loads(podman.run("inspect", "--format={{json .NetworkSettings.Networks}}", container))
    return [network["IPAddress"] for network in networks.values()]


def _container(podman: Podman, process: subprocess.Popen[str], *, service: str) -> str:
    """Waits for the container of a service to run; returns its name."""

    def found() -> str | None:
        assert process.poll() is None, process.communicate()[0][-6000:]
        running = podman.run("ps", "--format={{.Names}}").split()
        ours = [name for name in running if name.startswith("resolute-demo-")]
        return next((name for name in ours if name.endswith(f"_{service}_1")), None)

    name = wait_until(found, what=f"{service} to run", seconds=_SECONDS, pause=0.5)
    assert name is not None
    return name


def _arguments(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:  # it has ended
        return ""
