"""A disk that is full where checkpoints go to, which is waited for, or come to: an error that says where."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.file_systems import small_file_system
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.core.remote.session import OUTAGE_TIMEOUT_VARIABLE
from resolute.errors import QuotaError, UnavailableError
from resolute.transfer.cache import DIRECTORY_VARIABLE
from resolute.trial_errors import CheckpointNotFound

LARGE = b"large" * 500_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "large").write_bytes(LARGE)
    return tmp_path / "source"


class WhenItWaits(logging.Handler):
    """Does something once the log says that a checkpoint waits, and keeps what it says.

    Args:
        reason: What the log must say.
        action: What is done.
    """

    def __init__(self, reason: str, action: Callable[[], object]) -> None:
        super().__init__()
        self._reason = reason
        self._action = action
        self.waited = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.waited and re.search(self._reason, record.getMessage()):
            self.waited = True
            self._action()

    def __enter__(self) -> None:
        logging.getLogger("resolute.core").addHandler(self)

    def __exit__(self, *failure: object) -> None:
        logging.getLogger("resolute.core").removeHandler(self)
        assert failure[0] is not None or self.waited


def fill(path: Path, *, but: int = 0) -> Path:
    """Takes all room of the disk that a file is on, but for some bytes."""
    with path.open("wb", buffering=0) as ballast:
        with contextlib.suppress(OSError):
            while ballast.write(b"x" * 4096):
                pass
        ballast.truncate(ballast.tell() - but)
    return path


@pytest.mark.integration
def test_an_upload_waits_for_room_in_its_store(trial: Trial, tmp_path: Path, source: Path) -> None:
    with (
        small_file_system(tmp_path / "disk", "4m") as disk,
        core.init(checkpoint_storage=str(disk / "store")) as context,
    ):
        ballast = fill(disk / "ballast", but=2 << 20)
        with WhenItWaits(rf"waits .*to {disk}/store: No space left .*; free some space", ballast.unlink):
            checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        with context.checkpoint.restore_path(checkpoint_id) as path:
            assert (path / "large").read_bytes() == LARGE


@pytest.mark.integration
def test_a_checkpoint_is_begun_once_there_is_room_for_it(trial: Trial, tmp_path: Path) -> None:
    with (
        small_file_system(tmp_path / "disk", "8m") as disk,
        core.init(checkpoint_storage=str(disk / "store")) as context,
    ):
        # Nothing is known of the size of the first yet: a little room is enough for it to begin.
        ballast = fill(disk / "ballast")
        with (
            WhenItWaits(rf"waits .*{disk}/store is full: 0 bytes .* needed; free some space", ballast.unlink),
            context.checkpoint.store_path({"steps_completed": 1}) as (path, first),
        ):
            (path / "large").write_bytes(LARGE)
        fill(ballast, but=2 << 20)
        with (
            WhenItWaits(rf"waits .*{disk}/store is full: .* needed; free some space", ballast.unlink),
            context.checkpoint.store_path({"steps_completed": 2}) as (path, second),
        ):
            (path / "large").write_bytes(LARGE)
        for checkpoint_id in (first, second):
            with context.checkpoint.restore_path(checkpoint_id) as path:
                assert (path / "large").read_bytes() == LARGE


@pytest.mark.integration
def test_a_store_that_stays_full_is_named_and_left_as_it_was(
    trial: Trial, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OUTAGE_TIMEOUT_VARIABLE, "0")
    with (
        small_file_system(tmp_path / "disk", "4m") as disk,
        core.init(checkpoint_storage=str(disk / "store")) as context,
    ):
        ballast = fill(disk / "ballast", but=2 << 20)
        with pytest.raises(QuotaError, match=rf"to {disk}/store: No space left .*; free some space"):
            context.checkpoint.upload(source, {"steps_completed": 1})
        assert [path for path in (disk / "store").rglob("*") if path.is_file()] == []
        fill(ballast)
        with pytest.raises(UnavailableError, match=f"the disk that holds {disk}/store is full"):
            context.checkpoint.upload(source, {"steps_completed": 1})
        ballast.unlink()
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        context.checkpoint.delete(checkpoint_id)
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.get_metadata(checkpoint_id)


@pytest.mark.integration
def test_a_full_disk_of_a_download_is_named_and_that_of_the_cache_is_no_failure(
    trial: Trial, server: S3Server, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}
    with small_file_system(tmp_path / "disk", "1m") as disk:
        monkeypatch.setenv(DIRECTORY_VARIABLE, str(disk / "cache"))
        with core.init(checkpoint_storage=storage) as context:
            checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
            context.checkpoint.download(checkpoint_id, tmp_path / "there")
            assert (tmp_path / "there" / "large").read_bytes() == LARGE
            with pytest.raises(QuotaError, match=rf"to {disk}/here: No space left .*; free some space"):
                context.checkpoint.download(checkpoint_id, disk / "here")
