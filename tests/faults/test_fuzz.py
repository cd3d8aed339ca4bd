"""A small campaign of odd calls; ``make fuzz`` makes many more, on both databases."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
import structlog
from faults.fuzz.campaign import Campaign, Finding, Report, collected_lines, describe
from support.waiting import wait_until

CALLS = 500


@pytest.mark.timeout(300)
def test_odd_calls_do_not_fail_inside_and_most_reach_the_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    seed = zlib.crc32(str(pytestconfig.option.sample_seed).encode())
    report = asyncio.run(Campaign(seed).run(tmp_path, calls=CALLS))
    assert not report.findings, describe(report)
    assert not report.tracebacks, describe(report)
    assert report.codes.total() == CALLS
    assert len(report.ways) == 6
    assert report.share >= 0.5, describe(report)


def test_a_call_that_fails_inside_is_printed_at_once_with_what_was_logged_meanwhile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = Report(7)
    with collected_lines(report):
        structlog.get_logger().warning("before")
        began = time.monotonic()
        structlog.get_logger().warning("slow write", method="/a/B")
        logging.getLogger("grpc").error("lost")
        try:
            raise RuntimeError("planted")
        except RuntimeError:
            structlog.get_logger().exception("failed")
    assert "planted" in capsys.readouterr().out
    report.note_failure(Finding(3, "/a/B", "gRPC, trial_id", "UNKNOWN", report.logged_since(began)))
    said = capsys.readouterr().out
    assert "call 3 /a/B (gRPC, trial_id): UNKNOWN" in said
    assert all(text in said for text in ("slow write", "ERROR grpc: lost", "planted"))
    assert "before" not in said
    assert said.strip() in describe(report)


@pytest.mark.timeout(300)
def test_a_campaign_that_is_ended_prints_what_it_has_found(tmp_path: Path) -> None:
    tests = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": tests}
    command = [sys.executable, "-m", "faults.fuzz.campaign", "--calls", "1000000", "--seed", "5"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as campaign:
        wait_until(lambda: any(tmp_path.rglob("*.sqlite")), what="its databases", seconds=120)
        campaign.terminate()
        said, _ = campaign.communicate(timeout=120)
    assert campaign.returncode == 128 + signal.SIGTERM
    assert "seed 5: " in said
    assert "failed inside" in said
    assert not any(tmp_path.iterdir())
