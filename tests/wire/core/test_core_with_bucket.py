"""The Core API of a trial whose checkpoints lie in a bucket: real services, a real S3 server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.core_cluster import Trial
from support.s3 import S3Server

from resolute import core
from resolute.errors import FailedPreconditionError
from resolute.trial_errors import CheckpointNotFound
from resolute_checkpoints.blobs.s3 import MULTIPART_BYTES


def storage(server: S3Server, bucket: str) -> dict[str, str]:
    return {"type": "s3", "bucket": bucket, "prefix": "team", "endpoint_url": server.endpoint_url}


def test_a_checkpoint_is_put_listed_and_got_by_a_trial_without_credentials(
    bucket_trial: Trial, server: S3Server, tmp_path: Path
) -> None:
    bucket = server.new_bucket()
    big = os.urandom(1 << 20) * (MULTIPART_BYTES >> 20)
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, checkpoint_id):
            (path / "small").write_bytes(b"s")
            (path / "big").write_bytes(big)
            (path / "nothing").mkdir()
        with context.checkpoint.restore_path(checkpoint_id) as restored:
            assert (restored / "big").read_bytes() == big
            assert (restored / "nothing").is_dir()
            assert json.loads((restored / "metadata.json").read_text())["steps_completed"] == 3
        found = server.client().list_objects(bucket, recursive=True)
        assert sorted((item.object_name or "").removeprefix(f"team/{checkpoint_id}/") for item in found) == [
            "big",
            "metadata.json",
            "small",
        ]
        context.checkpoint.download(checkpoint_id, tmp_path / "copy", selector=lambda name: name == "small")
        assert [entry.name for entry in (tmp_path / "copy").iterdir()] == ["small"]
        context.checkpoint.delete(checkpoint_id)
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.download(checkpoint_id, tmp_path / "gone")
    assert list(server.client().list_objects(bucket, recursive=True)) == []


def test_a_failed_upload_leaves_nothing_and_says_why(
    bucket_trial: Trial, server: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_bytes(b"a")
    with (
        core.init(checkpoint_storage=storage(server, "resolute-nowhere")) as context,
        pytest.raises(FailedPreconditionError, match=r"'resolute-nowhere' .* make the bucket"),
    ):
        context.checkpoint.upload(tmp_path / "source", {"steps_completed": 1})


def test_a_store_that_is_restarted_while_a_checkpoint_is_written_does_not_end_the_training(
    bucket_trial: Trial, server: S3Server
) -> None:
    bucket = server.new_bucket()
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, checkpoint_id):
            (path / "a").write_bytes(b"a")
            server.stop()
            bucket_trial.services.down()
            server.start()
            bucket_trial.services.up()
        with context.checkpoint.restore_path(checkpoint_id) as restored:
            assert (restored / "a").read_bytes() == b"a"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_the_shards_of_a_model_go_to_the_bucket_and_come_from_there(
    bucket_trial: Trial, server: S3Server
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch.distributed.checkpoint.state_dict_loader import load
    from torch.distributed.checkpoint.state_dict_saver import save

    from resolute.pytorch.sharded import CheckpointReader, checkpoint_writer

    with core.init(checkpoint_storage=storage(server, server.new_bucket())) as context:
        with checkpoint_writer(context.checkpoint, {"steps_completed": 3}) as (writer, checkpoint_id):
            save({"weights": torch.arange(64)}, storage_writer=writer)
        state = {"weights": torch.zeros(64, dtype=torch.int64)}
        with CheckpointReader(context.checkpoint, checkpoint_id) as reader:
            load(state, storage_reader=reader)
    assert torch.equal(state["weights"], torch.arange(64))


def test_keys_that_a_script_gives_are_not_used_on_a_cluster_and_it_says_so(
    bucket_trial: Trial, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    given = {**storage(server, server.new_bucket()), "access_key": "a-key", "secret_key": "a-s3cret"}
    with core.init(checkpoint_storage=given) as context:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, checkpoint_id):
            (path / "a").write_bytes(b"a")
        with context.checkpoint.restore_path(checkpoint_id) as restored:
            assert (restored / "a").read_bytes() == b"a"
    assert "credentials in checkpoint_storage are not used on a cluster" in caplog.text
    assert "a-s3cret" not in caplog.text
