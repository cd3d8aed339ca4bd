"""Log files of bounded size that their owner alone can read."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from support.logs import plain_logs

from resolute.errors import InvalidArgumentError
from resolute_serving.observability.logs import configure_logs, log_file_bytes


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, umask = logging.getLogger(), os.umask(0)
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    plain_logs()
    os.umask(umask)


def test_a_long_log_is_kept_in_a_bounded_number_of_files(tmp_path: Path) -> None:
    file = tmp_path / "up.log"
    configure_logs(service="embedded", file=file, file_bytes=2000)
    log = structlog.get_logger("test")
    for number in range(500):
        log.warning("something happened", number=number)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["up.log", *(f"up.log.{n}" for n in range(1, 5))]
    assert all(path.stat().st_size <= 2000 for path in files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    last = file.read_text().splitlines()[-1]
    assert json.loads(last.partition("{")[1] + last.partition("{")[2])["number"] == 499


def test_the_size_is_a_setting() -> None:
    assert log_file_bytes({}) == 10 * 1024 * 1024
    assert log_file_bytes({"RESOLUTE_LOG_FILE_BYTES": "4096"}) == 4096
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_LOG_FILE_BYTES is '10M'"):
        log_file_bytes({"RESOLUTE_LOG_FILE_BYTES": "10M"})
