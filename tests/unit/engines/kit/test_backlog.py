"""Since when a spool waits, by looking at it again and again."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import Line, Stdtype
from resolute.spool.line_writer import LineWriter
from resolute_engines.kit.run_directories.spools import StalledSpools, waits


def test_time_counts_while_nothing_arrives(tmp_path: Path) -> None:
    writer, backlog = LineWriter(tmp_path, clock=SYSTEM_CLOCK), StalledSpools()
    assert not waits(writer.path)
    writer.append_lines([Line(1.0, Stdtype.STDOUT, b"one")])
    first = writer.path.stat().st_size
    assert backlog.look([writer.path], now=100.0) == 0.0
    assert backlog.look([writer.path], now=130.0) == 30.0
    writer.append_lines([Line(1.0, Stdtype.STDOUT, b"two")])
    assert backlog.look([writer.path], now=140.0) == 40.0

    ack = AckFile.of(writer.path)
    ack.advance(first)
    assert backlog.look([writer.path], now=150.0) == 0.0, "something arrived"
    assert backlog.look([writer.path], now=155.0) == 5.0
    ack.advance(writer.path.stat().st_size)
    ack.close()
    assert backlog.look([writer.path], now=160.0) == 0.0
    assert backlog.look([writer.path, tmp_path / "gone.logs"], now=160.0) == 0.0
