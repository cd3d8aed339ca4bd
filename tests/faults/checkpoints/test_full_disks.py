"""A disk that is full where checkpoints go to, or come to: an error that says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.file_systems import small_file_system
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.errors import QuotaError
from resolute.transfer.cache import DIRECTORY_VARIABLE
from resolute.trial_errors import CheckpointNotFound

LARGE = b"large" * 500_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "large").write_bytes(LARGE)
    return tmp_path / "source"


@pytest.mark.integration
def test_a_full_store_is_named_and_takes_the_checkpoint_once_there_is_room(
    trial: Trial, tmp_path: Path, source: Path
) -> None:
    with (
        small_file_system(tmp_path / "disk", "4m") as disk,
        core.init(checkpoint_storage=str(disk / "store")) as context,
    ):
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * (2 << 20))
        with pytest.raises(QuotaError, match=rf"to {disk}/store: No space left .*; free some space"):
            context.checkpoint.upload(source, {"steps_completed": 1})
        assert [path for path in (disk / "store").rglob("*") if path.is_file()] == []
        ballast.unlink()
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        with context.checkpoint.restore_path(checkpoint_id) as path:
            assert (path / "large").read_bytes() == LARGE
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
