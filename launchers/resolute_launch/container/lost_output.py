"""Turns output that a lost supervisor had not read into lines of the log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from resolute.contracts.clock import Clock
from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.remaining_output import PIPES, lost_file, mark_delivered, rest_file
from resolute.contracts.spool.format import LOGS_SUFFIX, Line, Stdtype
from resolute.info import ClusterInfo
from resolute.runtime.redaction import Secrets, StreamRedactor
from resolute.spool.line_splitter import LineSplitter
from resolute.spool.line_writer import LineWriter
from resolute_launch import environment_variables
from resolute_launch.container.entrypoint_process import released_variables

MARKER = (
    "WARNING: the supervisor of this run was lost and its processes were killed; "
    "the last line that each of them had begun may be missing or cut"
)
"""Says in the log of a trial that the supervisor of a run was lost."""
_SPOOL = f"lost{LOGS_SUFFIX}"
"""One name, so that the lines are spooled once however often this is interrupted."""


def spool_lost_output(run: RunDirectory, order: LaunchOrder, *, clock: Clock) -> None:
    """Puts the saved output of a run whose supervisor was lost into a spool, and says so there.

    Does nothing for other runs. It can be interrupted anywhere and repeated, until the spool is being sent.

    Args:
        run: The run directory; no other process works in it.
        order: Has the secrets that may be in the output.
        clock: Times lines about the spool itself.

    Raises:
        QuotaError: The disk is full.
        OSError: The same for another fault of the disk.
    """
    loss = read_json(lost_file(run.path))
    if loss is None:
        return
    spool = run.spool / _SPOOL
    if not spool.exists():
        folder = run.path / "lost.new"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        writer = LineWriter(folder, name="lost", clock=clock)
        writer.append_lines(_lines(run, order, time=float(loss["time"])))
        writer.close()
        writer.path.rename(spool)
        shutil.rmtree(folder)
    mark_delivered(run.path)


def _lines(run: RunDirectory, order: LaunchOrder, *, time: float) -> Iterator[Line]:
    secrets = _secrets(run, order)
    for pipe in PIPES:
        rest = rest_file(run.path, pipe)
        data = rest.read_bytes() if rest.exists() else b""
        masking, splitter = StreamRedactor(secrets), LineSplitter()
        for text in (masking.feed(data), masking.finish()):
            yield from (Line(time, Stdtype[pipe.upper()], line) for line in splitter.feed(text))
        yield from (Line(time, Stdtype[pipe.upper()], line) for line in splitter.finish())
    yield Line(time, Stdtype.PLATFORM, MARKER.encode())


def _secrets(run: RunDirectory, order: LaunchOrder) -> Secrets:
    """The secrets that the processes of the run were given: its supervisor, which knew them all, is gone."""
    info = ClusterInfo._from_file(run.info)  # noqa: SLF001 - the only reader of these files
    secrets = Secrets(order.token, run.read_token(), info.session_token if info else "")
    for name, value in released_variables(run).items():
        if name == environment_variables.COLLECTIVE_KEY:
            secrets.add(value)
    for value in run.read_secrets():
        secrets.add_printed(value)
    return secrets
