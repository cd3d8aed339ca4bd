"""Progress of transfers: a bar where somebody looks, lines where nobody does."""

from __future__ import annotations

import contextlib
import os
import pty
import sys

import pytest
from support.clocks import ManualClock

from resolute.cli.display.transfer_progress import transfer_progress


def test_elsewhere_than_on_a_terminal_a_line_comes_now_and_then(capfd: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    with transfer_progress("checkpoint a is downloaded", total=100, clock=clock) as progress:
        progress.advance(10)
        clock.advance(10.0)
        progress.advance(40)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "checkpoint a is downloaded: 50 B of 100 B (50%), 5 B/s, about 10 s left\n"


def _everything(descriptor: int) -> str:
    """Reads what a terminal was sent, once nobody has it open any more."""
    pieces = []
    # Which Linux tells by an error.
    with contextlib.suppress(OSError):
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
    os.close(descriptor)
    return b"".join(pieces).decode()


def test_on_a_terminal_there_is_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with transfer_progress("checkpoint a is downloaded", total=4 << 20) as progress:
            progress.advance(1 << 20)
    written = _everything(ours)
    assert "25%" in written
    assert "1.0/4.0 MiB" in written
    # Its line is erased for what is printed next.
    assert written.rstrip("\r\n").endswith("\x1b[2K")
