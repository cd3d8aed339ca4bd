"""The log of a trial says that reports were dropped."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.spool.format import LOGS_SUFFIX, Line
from resolute.spool.delivery.drop_notes import DropNotes
from resolute.spool.delivery.run_log import RunLog
from resolute.spool.reader import SpoolReader


def said(spool: Path) -> list[str]:
    found = []
    for path in sorted(spool.glob(f"*{LOGS_SUFFIX}")):
        chunk = SpoolReader(path).peek(1 << 20)
        assert chunk is not None
        found += [record.text.decode() for record in chunk.records() if isinstance(record, Line)]
    return sorted(found)


def test_a_line_at_the_first_at_ten_times_as_many_and_at_the_end(tmp_path: Path) -> None:
    notes = DropNotes(RunLog(tmp_path, clock=SYSTEM_CLOCK).warn)
    notes.finish()
    for count in (1, 2, 9, 15, 16):
        notes.note(count, f"{count:02} reports were dropped")
    notes.finish()
    notes.finish()
    assert said(tmp_path) == [f"WARNING: {count} reports were dropped" for count in ("01", "15", "16")]
