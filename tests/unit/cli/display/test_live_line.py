"""The line of progress that stands below the log of a followed experiment."""

from __future__ import annotations

import io
import sys

import pytest

from resolute.cli.display.experiment.follow import LiveDisplay

_LINE = (
    "experiment 12 ACTIVE · 43% · trials: 2 running, 13 waiting, 4 done "
    "· best accuracy 0.983333 (trial 17, step 1200)"
)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_progress_takes_one_row_however_narrow_the_terminal_is(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with LiveDisplay() as display:
        display.progress(_LINE)
    rows = [row for row in terminal.getvalue().split("\n") if "experiment 12" in row]
    assert rows
    shown = rows[-1].split("experiment 12")[1].partition("\x1b")[0].rstrip("\r")  # drawn again
    assert shown.startswith(" ACTIVE · 43%")
    assert len("  experiment 12" + shown) <= columns
    assert "(trial 17" in shown if columns == 120 else shown.rstrip().endswith("…")
