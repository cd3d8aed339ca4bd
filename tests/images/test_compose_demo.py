"""`make compose-demo`: the compose file with real containers, and the end of all of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.containers import Podman
from support.page_commands import ROOT
from support.waiting import wait_until

_PROGRAM = ROOT / "tools/compose_demo/run.py"
_SECONDS = 1800.0
_TERMINATED = 143


@contextmanager
def _demonstration(podman: Podman) -> Iterator[subprocess.Popen[str]]:
    """Runs it, and ends it with the block; it must leave nothing."""
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM)],
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


def test_the_search_of_make_demo_finds_the_same_best_trial_on_the_compose_file(podman: Podman) -> None:
    with _demonstration(podman) as process:
        said, _ = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, said[-6000:]
    assert "16 of 16 done" in said
    assert "The best trial is that of `make demo`" in said
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
