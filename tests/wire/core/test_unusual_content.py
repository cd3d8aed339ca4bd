"""What is unusual in a checkpoint is kept exactly or refused with a reason, in directories and in buckets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.core_cluster import Trial
from support.s3 import S3Server

from resolute import core
from resolute.errors import FailedPreconditionError, InvalidArgumentError, ResoluteError
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
        (_no_text, r"odd\\xff has a name that is no text in UTF-8, .*; rename it and repeat"),
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
