"""Folders with parked processes, which end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.waiting import wait_until
from wire.warm.runs import missing

from resolute_launch.warm import protocol


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose parked processes end with the test."""
    yield tmp_path
    for directory in (tmp_path / "warm").glob("*"):
        connection = protocol.connect(directory)
        if connection is not None:
            with connection:
                connection.sendall(protocol.QUIT)
            wait_until(partial(missing, directory / protocol.SOCKET))
