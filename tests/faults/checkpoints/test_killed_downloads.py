"""``resolute checkpoint download`` that is killed in the middle of a file, and called again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.clusters.trial_cluster import Trial, cluster
from support.object_stores.s3 import S3Server, own_s3_server

from resolute import core

BIG = os.urandom(1 << 20) * 8
KILL_AFTER = 3 << 20
DOWNLOAD = """
import contextlib, os, signal, sys, time
from resolute.cli.main import run
from resolute.client.downloads import checkpoint_files as download

least, journal, *command = sys.argv[1:]
opened = download.open_source
target = command[command.index("-o") + 1]

class Watched:
    is_local = False
    parallel = False

    def __init__(self, source):
        self.source, self.moved = source, 0

    def read(self, path, take, *, start=0, size=None):
        with open(journal, "a") as file:
            file.write(f"{path} {start}\\n")

        def watched(piece):
            take(piece)
            # Both files are read at once: only the thread of the big one counts, and waits.
            if path != "big":
                return
            self.moved += len(piece)
            if 0 < int(least) <= self.moved:
                # The other file comes beside this one, and is to be there when the process dies.
                while not os.path.exists(os.path.join(target, "a")):
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)

        self.source.read(path, watched, start=start, size=size)

@contextlib.contextmanager
def open_source(*arguments, **options):
    with opened(*arguments, **options) as source:
        yield Watched(source)

download.open_source = open_source
sys.exit(run(command, program="resolute"))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with own_s3_server(tmp_path / "s3") as running:
        yield running


@pytest.fixture
def trial(tmp_path: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running


def in_a_bucket(server: S3Server) -> dict[str, str] | None:
    return {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}


def in_the_shared_directory(_: S3Server) -> dict[str, str] | None:
    return None


@pytest.mark.parametrize("mode", ["direct", "master"])
@pytest.mark.parametrize("where", [in_the_shared_directory, in_a_bucket])
def test_a_killed_download_goes_on_in_the_middle_of_the_file(
    trial: Trial,
    server: S3Server,
    tmp_path: Path,
    where: Callable[[S3Server], dict[str, str] | None],
    mode: str,
) -> None:
    with (
        core.init(checkpoint_storage=where(server)) as context,
        context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id),
    ):
        (path / "a").write_bytes(b"a")
        (path / "big").write_bytes(BIG)
    target, journal = tmp_path / "target", tmp_path / "journal"
    environment = {
        **os.environ,
        "RESOLUTE_MASTER": trial.services.address,
        "RESOLUTE_TOKEN": trial.services.running.user_token(),
        "RESOLUTE_HOME": str(tmp_path / "home"),
    }

    def download(kill_after: int) -> subprocess.CompletedProcess[str]:
        command = ["checkpoint", "download", checkpoint_id, "-o", str(target), "--mode", mode]
        return subprocess.run(
            [sys.executable, "-c", DOWNLOAD, str(kill_after), str(journal), *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    with capture_logs() as logs:
        killed = download(KILL_AFTER)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (target / "metadata.json").exists()
    left = max(path.stat().st_size for path in target.glob(".partial-*/*"))
    assert 0 < left < len(BIG)

    journal.unlink()
    with capture_logs() as more_logs:
        again = download(0)
    assert again.returncode == 0, again.stderr
    assert not [entry for entry in logs + more_logs if entry["log_level"] == "error"], "none is a defect"
    assert (target / "big").read_bytes() == BIG
    assert {path.name for path in target.iterdir()} == {"a", "big", "metadata.json"}
    asked = journal.read_text().splitlines()
    assert f"big {left}" in asked
    assert "a 0" not in asked, "what was there already is not fetched again"
