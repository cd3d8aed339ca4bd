"""The log of a supervisor begins again when it has become large, whatever writes to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import logging, os, sys
from pathlib import Path
from resolute_launch.supervisor.bounded_log import BoundedLogHandler

logging.basicConfig(handlers=[BoundedLogHandler(Path(sys.argv[1]), most_bytes=1000)], level="INFO")
for number in range(100):
    logging.info("line %d", number)
os.write(1, b"from a library\\n")
"""


def run(log: Path, behind: Path) -> None:
    with behind.open("ab") as file:
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(log)], stdout=file, stderr=file, check=True, timeout=60
        )


def test_a_log_begins_again_and_the_file_before_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    run(log, log)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["supervisor.log", "supervisor.log.1"]
    kept = (tmp_path / "supervisor.log.1").read_text() + log.read_text()
    assert kept.endswith("line 99\nfrom a library\n")
    assert 1000 < len(kept) < 2100


def test_an_output_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "supervisor.log", tmp_path / "another")
    assert "line 0\n" in (tmp_path / "another").read_text()
