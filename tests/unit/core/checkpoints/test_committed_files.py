"""A checkpoint that counts is out of its script's reach, and a script's own files are kept as they are."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from resolute import core
from resolute.core.checkpoint.files.manifest import metadata_text
from resolute.core.remote.registry import metadata_with_steps
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


def test_an_open_file_that_was_removed_again_is_no_reason(context: core.Context) -> None:
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        removed = (directory / "temporary").open("w")
        (directory / "temporary").unlink()
    removed.close()
    assert context.checkpoint.get_metadata(checkpoint) == {"steps_completed": 1}


def test_links_that_lead_to_each_other_are_refused_by_name(context: core.Context) -> None:
    storing = context.checkpoint.store_path({"steps_completed": 1})
    directory, _ = storing.__enter__()
    (directory / "one").symlink_to("other")
    (directory / "other").symlink_to("one")
    with pytest.raises(FailedPreconditionError, match="is a link that leads to o"):
        storing.__exit__(None, None, None)


@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("target", ["{outside}/data", "../../outside/data", "../../outside", "{here}/model"])
def test_a_link_that_leads_out_of_the_checkpoint_is_refused_by_name(
    context: core.Context, tmp_path: Path, target: str, shard: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data").write_text("of somebody else")
    storing = context.checkpoint.store_path({"steps_completed": 1}, shard=shard)
    directory, checkpoint = storing.__enter__()
    (directory / "model").write_text("weights")
    (directory / "link").symlink_to(target.format(outside=outside, here=directory))
    problem = r"^link is a link that leads to .*: copy the file, or link by a relative path"
    with pytest.raises(FailedPreconditionError, match=problem):
        storing.__exit__(None, None, None)
    with pytest.raises(Exception, match=checkpoint):
        context.checkpoint.get_metadata(checkpoint)


def test_a_link_within_the_checkpoint_is_kept(context: core.Context) -> None:
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        (directory / "deep").mkdir()
        (directory / "deep" / "model").write_text("weights")
        (directory / "latest").symlink_to("deep/model")
    with context.checkpoint.restore_path(checkpoint) as path:
        assert (path / "latest").read_text() == "weights"


@pytest.mark.parametrize("prepare", [metadata_with_steps, metadata_text], ids=["cluster", "local"])
def test_numpy_values_in_metadata_are_refused_with_the_remedy(prepare: Any) -> None:
    for value in (np.int64(3), np.array([1.0]), np.float32(0.5)):
        with pytest.raises(
            TypeError, match=r"must be plain data.*such as float\(value\) or value\.tolist\(\)"
        ):
            prepare({"steps_completed": 1, "loss": value})
    assert prepare({"steps_completed": 1, "loss": np.float64(0.5)})


@pytest.mark.parametrize("prepare", [metadata_with_steps, metadata_text], ids=["cluster", "local"])
def test_metadata_that_hold_themselves_are_refused_with_the_remedy(prepare: Any) -> None:
    metadata: dict[str, Any] = {"steps_completed": 1}
    metadata["again"] = metadata
    with pytest.raises(TypeError, match="must be plain data: Circular reference"):
        prepare(metadata)


def test_steps_of_numpy_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"a whole number was expected, such as int\(steps\)"):
        metadata_with_steps({"steps_completed": np.int64(3)})


@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_committed_files_are_read_only_and_can_be_deleted(
    context: core.Context, tmp_path: Path, shard: bool, background: bool
) -> None:
    storing = context.checkpoint.store_path({"steps_completed": 1}, shard=shard, background=background)
    with storing as (directory, checkpoint):
        (directory / "deep").mkdir()
        (directory / "deep" / "model").write_text("weights")
    # Who keeps the path reaches nothing by it, not even as root.
    with pytest.raises(FileNotFoundError):
        (directory / "deep" / "model").write_text("later")
    context.checkpoint.wait()
    committed = tmp_path / "store" / checkpoint
    assert (committed / "deep" / "model").read_text() == "weights"
    assert (committed / "deep" / "model").stat().st_mode & 0o222 == 0
    assert {found.name for found in committed.iterdir()} == {"deep", "metadata.json"}
    context.checkpoint.delete(checkpoint)
    assert not committed.exists()


def test_a_file_that_is_mapped_into_memory_for_writing_is_refused_by_name(context: core.Context) -> None:
    storing = context.checkpoint.store_path({"steps_completed": 1})
    directory, _ = storing.__enter__()
    (directory / "weights").write_bytes(bytes(8))
    mapped = torch.from_file(str(directory / "weights"), shared=True, size=8, dtype=torch.uint8)
    with pytest.raises(FailedPreconditionError, match="weights is still open for writing, so"):
        storing.__exit__(None, None, None)
    assert not mapped.any()


def test_a_file_that_is_mapped_for_reading_is_no_reason(context: core.Context) -> None:
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        torch.save(torch.ones(2), directory / "weights")
        mapped = torch.load(directory / "weights", mmap=True)
    assert context.checkpoint.get_metadata(checkpoint) == {"steps_completed": 1}
    assert mapped.all()


def test_a_file_that_a_child_process_still_writes_is_refused_by_its_name_and_the_childs(
    context: core.Context,
) -> None:
    storing = context.checkpoint.store_path({"steps_completed": 1})
    directory, _ = storing.__enter__()
    script = f"exec 9>{directory}/log; echo opened; read end"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        problem = f"log is still open for writing in process {child.pid}, which this one started"
        with pytest.raises(FailedPreconditionError, match=problem):
            storing.__exit__(None, None, None)
        child.communicate(b"")


def test_a_file_that_has_another_name_elsewhere_is_copied(context: core.Context, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("1")
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        (directory / "weights").hardlink_to(tmp_path / "weights")
    (tmp_path / "weights").write_text("2")
    with context.checkpoint.restore_path(checkpoint) as path:
        assert (path / "weights").read_text() == "1"
