"""The process that forks supervisors lives no longer than its engine."""

from __future__ import annotations

from pathlib import Path

from resolute_engines.local.fork_server import ForkServer


def test_a_start_that_comes_after_the_end_starts_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = ForkServer(log)
    server.close()
    server.start()
    assert not log.exists()


def test_a_process_that_was_started_is_ended(tmp_path: Path) -> None:
    server = ForkServer(tmp_path / "log")
    server.start()
    assert server._running is not None
    process, connection = server._running
    server.close()
    assert (process.poll() is not None, connection.fileno()) == (True, -1)
