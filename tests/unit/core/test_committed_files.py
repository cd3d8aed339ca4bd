"""A checkpoint that counts is out of its script's reach, and a script's own files are kept as they are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resolute import core
from resolute.errors import FailedPreconditionError

OWN = '{"mine": 1}'


@pytest.fixture
def context(tmp_path: Path) -> Any:
    with core.init(checkpoint_storage=str(tmp_path / "store")) as context:
        yield context


def kept(context: core.Context, checkpoint: str) -> Any:
    with context.checkpoint.restore_path(checkpoint) as directory:
        return json.loads((Path(directory) / "metadata.json").read_text())


def checkpoint_with(context: core.Context, content: str, *, background: bool = False) -> str:
    metadata = {"steps_completed": 3}
    with context.checkpoint.store_path(metadata, background=background) as (directory, checkpoint):
        (directory / "metadata.json").write_text(content)
    return checkpoint


@pytest.mark.parametrize("content", [OWN, "[1]", "no JSON", ""])
def test_a_file_of_the_scripts_own_where_the_metadata_would_be_is_kept(
    context: core.Context, content: str
) -> None:
    checkpoint = checkpoint_with(context, content)
    with context.checkpoint.restore_path(checkpoint) as directory:
        assert (Path(directory) / "metadata.json").read_text() == content
    assert context.checkpoint.get_metadata(checkpoint) == {"steps_completed": 3}


def test_metadata_of_an_earlier_checkpoint_are_written_anew(context: core.Context) -> None:
    checkpoint = checkpoint_with(context, '{"steps_completed": 1}')
    assert kept(context, checkpoint) == {"steps_completed": 3}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("shard", [False, True])
def test_upload_changes_nothing_in_the_directory(
    context: core.Context, tmp_path: Path, background: bool, shard: bool
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "model").write_text("weights")
    upload = partial(context.checkpoint.upload, source, background=background, shard=shard)
    first = upload({"steps_completed": 2})
    assert [path.name for path in source.iterdir()] == ["model"]
    assert kept(context, first) == {"steps_completed": 2}
    (source / "metadata.json").write_text(OWN)
    second = upload({"steps_completed": 3})
    assert kept(context, second) == json.loads(OWN)
    assert (source / "metadata.json").read_text() == OWN
    assert context.checkpoint.get_metadata(second) == {"steps_completed": 3}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("mode", ["a", "w", "r+"])
def test_a_file_that_is_still_open_for_writing_is_refused_by_name(
    context: core.Context, mode: str, background: bool
) -> None:
    storing = context.checkpoint.store_path({"steps_completed": 1}, background=background)
    directory, checkpoint = storing.__enter__()
    (directory / "logs").mkdir()
    (directory / "logs" / "log.txt").write_text("")
    with (
        (directory / "logs" / "log.txt").open(mode),
        pytest.raises(FailedPreconditionError, match=r"logs/log\.txt is still open for writing"),
    ):
        storing.__exit__(None, None, None)
    with pytest.raises(Exception, match=checkpoint):
        context.checkpoint.get_metadata(checkpoint)


def test_a_file_that_is_open_for_reading_and_one_elsewhere_are_no_reason(
    context: core.Context, tmp_path: Path
) -> None:
    with (tmp_path / "elsewhere").open("w"), context.checkpoint.store_path({"steps_completed": 1}) as stored:
        (stored[0] / "model").write_text("weights")
        reading = (stored[0] / "model").open()
    reading.close()
    assert context.checkpoint.get_metadata(stored[1]) == {"steps_completed": 1}


def test_committed_files_are_read_only_and_can_be_deleted(context: core.Context) -> None:
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        (directory / "deep").mkdir()
        (directory / "deep" / "model").write_text("weights")
    assert (directory / "deep" / "model").stat().st_mode & 0o222 == 0
    context.checkpoint.delete(checkpoint)
    assert not directory.exists()
