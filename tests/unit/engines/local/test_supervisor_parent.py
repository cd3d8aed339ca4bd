"""The process that forks supervisors lives no longer than its engine."""

from __future__ import annotations

from pathlib import Path

from resolute_engines.local.supervisor_parent import SupervisorParent


def test_a_start_that_comes_after_the_end_starts_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    parent = SupervisorParent(log)
    parent.close()
    parent.start()
    assert not log.exists()


def test_a_process_that_was_started_is_ended(tmp_path: Path) -> None:
    parent = SupervisorParent(tmp_path / "log")
    parent.start()
    assert parent._running is not None
    process, connection = parent._running
    parent.close()
    assert (process.poll() is not None, connection.fileno()) == (True, -1)
