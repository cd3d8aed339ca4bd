"""The last lines of a process's log."""

from __future__ import annotations

import logging

from resolute_serving.observability.recent_lines import RecentLines


def test_a_record_of_many_lines_is_kept_line_by_line_and_as_text_that_can_be_sent() -> None:
    lines = RecentLines()
    for message in ("first", "a\nb", "caf\udce9"):
        lines.handle(logging.makeLogRecord({"msg": message}))
    kept = lines.after(0)
    assert [line.text for line in kept] == ["first", "a", "b", r"caf\udce9"]
    assert [line.sequence for line in kept] == [1, 2, 3, 4]
    assert "".join(line.text for line in kept).encode()
