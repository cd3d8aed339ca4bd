"""What is unusual in a checkpoint is kept exactly or refused with a reason, in directories and in buckets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.errors import FailedPreconditionError, InvalidArgumentError, ResoluteError
from resolute.rpc.channel import open_channel
from resolute.trial_errors import CheckpointNotFound

Storage = str | dict[str, str]
LONG = "/".join(["字" * 80, "ж" * 120, "x" * 200, "e\u0301" * 60])


@pytest.fixture(params=["directory", "bucket"])
def storage(request: pytest.FixtureRequest, bucket_trial: Trial, server: S3Server, tmp_path: Path) -> Storage:
    if request.param == "directory":
        return str(tmp_path / "store")
    return {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def test_names_of_any_script_and_length_empty_files_and_empty_directories_come_back(
    storage: Storage, source: Path, tmp_path: Path
) -> None:
    names = [LONG, "نموذج", " leading and trailing ", "+&%?#=;:@[]{}|\\^`'\"", "-rf", ".hidden", "a\nb\tc"]
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "zero").touch()
    (source / "empty" / "within").mkdir(parents=True)
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
    back = tmp_path / "back"
    assert {name: (back / name).read_text() for name in names} == {name: name for name in names}
    assert (back / "zero").read_bytes() == b""
    assert list((back / "empty" / "within").iterdir()) == []
    found = {path.relative_to(back) for path in back.rglob("*")} - {Path("metadata.json")}
    assert found == {path.relative_to(source) for path in source.rglob("*")} - {Path("metadata.json")}


def test_a_path_of_a_thousand_characters_is_kept_or_refused_by_what_the_store_takes(
    storage: Storage, source: Path, tmp_path: Path
) -> None:
    name = "/".join(["n" * 249] * 4)
    assert len(name) == 999
    (source / name).parent.mkdir(parents=True)
    (source / name).write_text("deep")
    with core.init(checkpoint_storage=storage) as context:
        if isinstance(storage, dict):
            with pytest.raises(
                InvalidArgumentError, match=r"names of objects have at most 1024: use shorter"
            ):
                context.checkpoint.upload(source, {"steps_completed": 1})
            # The store takes 1024 bytes, and the identifier comes before the path.
            (source / name).rename(source / name[:-13])
            name = name[:-13]
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
    assert (tmp_path / "back" / name).read_text() == "deep"


def test_metadata_come_back_exactly(storage: Storage, source: Path) -> None:
    metadata = {
        "steps_completed": 2**62,
        "": None,
        "模型\0\n\u2028": ["e\u0301", "\U0001f600", {"nested": [[], {}, ()]}],
        "numbers": [0, -0.0, 1, 1.0, 2**63 - 1, -(2**63), 1e308, 5e-324, float("inf")],
        "truth": [True, False, 1, 0],
    }
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = context.checkpoint.upload(source, metadata)
        back = context.checkpoint.get_metadata(checkpoint_id)
        with context.checkpoint.restore_path(checkpoint_id) as path:
            written = json.loads((path / "metadata.json").read_text())
    expected = json.dumps(metadata, sort_keys=True)
    assert json.dumps(written, sort_keys=True) == expected
    assert back.pop("latest_batch") == 2**62, "the older name of the steps"
    assert json.dumps(back, sort_keys=True) == expected


def nested(levels: int) -> object:
    return [nested(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        (object(), TypeError, "not JSON serializable"),
        ({1, 2}, TypeError, "not JSON serializable"),
        (b"bytes", TypeError, "not JSON serializable"),
        ({1: "one"}, InvalidArgumentError, r"metadata\.odd has the key 1; keys must be text"),
        (2**64, InvalidArgumentError, r"metadata\.odd is \d+, which needs more than 64 bits"),
        (nested(40), InvalidArgumentError, "nests deeper than 30 levels"),
        ("\ud800", ValueError, "surrogates not allowed|UTF-8"),
    ],
)
def test_metadata_that_are_not_json_are_refused_before_a_byte_is_written(
    storage: Storage, source: Path, value: object, kind: type[Exception], problem: str
) -> None:
    (source / "model").write_text("weights")
    begun: list[str] = []
    with core.init(checkpoint_storage=storage) as context:
        with pytest.raises(kind, match=problem):
            context.checkpoint.upload(source, {"steps_completed": 1, "odd": value})
        with (
            pytest.raises(kind, match=problem),
            context.checkpoint.store_path({"steps_completed": 1, "odd": value}) as (_, checkpoint_id),
        ):
            begun.append(checkpoint_id)
    assert begun == []


def test_metadata_that_are_too_large_are_refused_and_nothing_is_seen(
    storage: Storage, source: Path, bucket_trial: Trial
) -> None:
    with core.init(checkpoint_storage=storage) as context:
        with pytest.raises(
            InvalidArgumentError, match=r"metadata takes \d+ bytes; .* put the rest into a file"
        ):
            context.checkpoint.upload(source, {"steps_completed": 1, "large": "x" * (1 << 19)})
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
    with open_channel(
        bucket_trial.services.address, token=bucket_trial.services.running.user_token
    ) as channel:
        request = api.ListCheckpointsRequest(trial_ids=[bucket_trial.trial_id])
        listed = CheckpointsServiceStub(channel).ListCheckpoints(request).checkpoints
    assert [each.checkpoint_id for each in listed] == [checkpoint_id]


def test_links_are_kept_as_what_they_lead_to(storage: Storage, source: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("from elsewhere")
    (source / "link").symlink_to(tmp_path / "elsewhere")
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})
        (tmp_path / "elsewhere").unlink()
        with context.checkpoint.restore_path(checkpoint_id) as path:
            assert (path / "link").read_text() == "from elsewhere"
            assert not (path / "link").is_symlink()


def _pipe(path: Path) -> None:
    os.mkfifo(path / "odd")


def _dangling(path: Path) -> None:
    (path / "odd").symlink_to("nowhere")


def _no_text(path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path) + b"/odd\xff")).touch()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_pipe, r"odd is neither a file nor a directory, .*; remove it and repeat"),
        (_dangling, r"odd is a link that leads nowhere, .*; remove it and repeat"),
        (_no_text, r"odd\\xff has a name that is not text in UTF-8, .*; rename it and repeat"),
    ],
)
def test_what_is_no_file_is_refused_and_nothing_is_seen(
    storage: Storage, source: Path, make: Callable[[Path], None], problem: str
) -> None:
    (source / "model").write_text("weights")
    make(source)
    begun: list[str] = []

    def write(context: Any) -> None:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id):
            begun.append(checkpoint_id)
            make(path)

    with core.init(checkpoint_storage=storage) as context:
        with pytest.raises(FailedPreconditionError, match=problem):
            context.checkpoint.upload(source, {"steps_completed": 1})
        with pytest.raises(FailedPreconditionError, match=problem):
            write(context)
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.get_metadata(begun[0])


def test_a_link_that_leaves_a_shared_directory_is_refused(bucket_trial: Trial, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    with core.init(checkpoint_storage=str(tmp_path / "store")) as context:
        with (
            pytest.raises(ResoluteError, match=r"link.*lead"),
            context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id),
        ):
            (path / "link").symlink_to(tmp_path / "secret")
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.get_metadata(checkpoint_id)


def test_an_object_whose_name_no_store_takes_is_refused(
    bucket_trial: Trial, server: S3Server, source: Path
) -> None:
    place = source / "/".join(["x" * 200] * 6)
    place.parent.mkdir(parents=True)
    place.write_text("deep")
    storage = {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}
    with (
        core.init(checkpoint_storage=storage) as context,
        pytest.raises(InvalidArgumentError, match=r"names of objects have at most .*: use shorter names"),
    ):
        context.checkpoint.upload(source, {"steps_completed": 1})
