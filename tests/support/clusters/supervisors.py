"""Real supervisors in processes of their own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_launch.container.entrypoint_process import process_tree_of


@dataclass
class Supervised:
    """A run with its supervisor."""

    run: RunDirectory
    process: subprocess.Popen[bytes]

    @property
    def child(self) -> ProcessIdentity | None:
        """The entrypoint's process."""
        return ProcessIdentity.from_json(read_json(self.run.child_file))

    def members(self) -> list[ProcessIdentity]:
        """Living processes of the run, without the supervisor."""
        return process_tree_of(self.run, self.child).members()

    def record(self) -> ExitRecord:
        """How the run ended."""
        record = ExitRecord.read(self.run.exit_file)
        assert record is not None, self.log()
        return record

    def wait(self, seconds: float = 30.0) -> int:
        """Waits for the supervisor's end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the supervisor goes on:\n{self.log()}") from None

    def log(self) -> str:
        """What the supervisor said."""
        return (self.run.path / "supervisor.log").read_text()


@contextmanager
def supervised(
    path: Path,
    plane: ControlPlane,
    *,
    environ: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    **order: Any,
) -> Iterator[Supervised]:
    """Starts a supervisor for the run of a control plane; ends everything at the end."""
    run = RunDirectory(path / "run" / str(order.get("container_rank", 0)))
    run.path.mkdir(parents=True, mode=0o700)
    values: dict[str, Any] = {
        "allocation_id": plane.spec.allocation_id,
        "master": plane.address,
        "token": "token-0",
        "slot_ids": (0,),
        "agent_id": "agent-1",
        "term_grace_seconds": 1.0,
        **order,
    }
    LaunchOrder(**values).write(run.launch_file)
    with (run.path / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "resolute_launch.supervisor", str(run.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(environ or {})},
        )
    running = Supervised(run, process)
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        process_tree_of(run, running.child).end(timeout=10)
        run.remove_external_resources()
