"""A small campaign of odd calls; ``make fuzz`` makes many more, on both databases."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest
from faults.fuzz.campaign import Campaign, describe

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
