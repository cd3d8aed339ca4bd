"""The Core API of a trial whose checkpoints are in a bucket: real services, real object stores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial, cluster
from support.object_stores.s3 import S3Server
from support.object_stores.servers import KINDS, ObjectServer, object_server

from resolute import core
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.errors import FailedPreconditionError
from resolute.trial_errors import CheckpointNotFound


def storage(server: S3Server, bucket: str) -> dict[str, str]:
    return {"type": "s3", "bucket": bucket, "prefix": "team", "endpoint_url": server.endpoint_url}


@pytest.fixture(params=KINDS)
def any_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectServer]:
    """A real store of each kind."""
    with object_server(request.param, tmp_path / request.param) as running:
        yield running


@pytest.fixture
def any_trial(tmp_path: Path, any_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """This process as a trial, beside services that are told the credentials of that store."""
    for name, value in any_server.variables().items():
        monkeypatch.setenv(name, value)
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running


def test_a_checkpoint_is_put_listed_and_got_by_a_trial_without_credentials(
    any_trial: Trial, any_server: ObjectServer, tmp_path: Path
) -> None:
    bucket = any_server.new_bucket()
    big = os.urandom(1 << 20) * (MULTIPART_BYTES >> 20)
    with core.init(checkpoint_storage=any_server.section(bucket)) as context:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, checkpoint_id):
            (path / "small").write_bytes(b"s")
            (path / "big").write_bytes(big)
            (path / "nothing").mkdir()
        with context.checkpoint.restore_path(checkpoint_id) as restored:
            assert (restored / "big").read_bytes() == big
            assert (restored / "nothing").is_dir()
            assert json.loads((restored / "metadata.json").read_text())["steps_completed"] == 3
        names = sorted(name.partition(f"{checkpoint_id}/")[2] for name in any_server.objects(bucket))
        assert names == ["big", "metadata.json", "small"]
        context.checkpoint.download(checkpoint_id, tmp_path / "copy", selector=lambda name: name == "small")
        assert [entry.name for entry in (tmp_path / "copy").iterdir()] == ["small"]
        context.checkpoint.delete(checkpoint_id)
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.download(checkpoint_id, tmp_path / "gone")
    assert any_server.objects(bucket) == {}


def test_what_did_not_change_is_not_sent_again_to_any_store(
    any_trial: Trial, any_server: ObjectServer
) -> None:
    bucket = any_server.new_bucket()
    with core.init(checkpoint_storage=any_server.section(bucket)) as context:
        identifiers = []
        for step in (1, 2):
            with context.checkpoint.store_path({"steps_completed": step}) as (path, checkpoint_id):
                (path / "backbone").write_bytes(b"frozen" * 1000)
                (path / "head").write_bytes(bytes([step]) * 10)
            identifiers.append(checkpoint_id)
        context.checkpoint.delete(identifiers[0])
        with context.checkpoint.restore_path(identifiers[1]) as restored:
            assert (restored / "backbone").read_bytes() == b"frozen" * 1000
        names = [name.split("/")[-2:] for name in any_server.objects(bucket)]
    assert [identifiers[0], "backbone"] in names
    assert [identifiers[1], "backbone"] not in names
    assert [identifiers[0], "head"] not in names


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
    import torch
    from torch.distributed.checkpoint.state_dict_loader import load
    from torch.distributed.checkpoint.state_dict_saver import save

    from resolute.pytorch.checkpointing.sharded import CheckpointReader, checkpoint_writer

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
