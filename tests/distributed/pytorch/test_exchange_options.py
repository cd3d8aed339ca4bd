"""Options of what exchanges gradients between two real ranks, and the error where one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.training.ranks.processes import finish

SCRIPT = Path(__file__).with_name("exchange_option_ranks.py")


@pytest.mark.parametrize(("backend", "case"), [("torch", "pass"), ("torch", "forget"), ("horovod", "pass")])
def test_two_ranks(backend: str, case: str, tmp_path: Path) -> None:
    finish(backend, SCRIPT, str(tmp_path), backend, case, timeout=300)
    assert {path.name for path in tmp_path.glob("passed-*")} == {"passed-0", "passed-1"}
