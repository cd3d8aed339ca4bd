"""Checkpoints of a script that no cluster runs: one contract over every place where they may lie."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from contract.checkpoints.off_cluster.conftest import CONTENT, STEPS, Server, fill
from support.object_stores.azure import AzureServer
from support.object_stores.off_cluster import S3Location, StorageLocation
from support.training.ranks.threads import rank_results

from resolute import core
from resolute.contracts.object_stores.bucket import Bucket as StoreBucket
from resolute.core.checkpoint.files.manifest import list_directory
from resolute.core.checkpoint.storage import open_store, parse_storage
from resolute.core.checkpoint.stores.bucket import BucketStore
from resolute.errors import (
    DataLossError,
    InvalidArgumentError,
    UnavailableError,
)
from resolute.trial_errors import CheckpointNotFound

BIG = 70 << 20
UPLOAD_AND_DIE = """
import os, sys, threading
from pathlib import Path
from resolute import core
from resolute.core.checkpoint.files.record import Record

keep = Record.written
Record.written = lambda record: os._exit(9) if record.finished else keep(record)
with core.init(checkpoint_storage=eval(sys.argv[1])) as context:
    with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id):
        (path / "half").write_text("half")
        print(checkpoint_id, flush=True)
"""


def assert_came_back(directory: Path, source: Path) -> None:
    """Checks that a downloaded checkpoint has what it was made of, and its metadata."""
    files = list_directory(directory)
    assert files.pop("metadata.json")
    assert files == list_directory(source)


def test_what_goes_in_comes_out_and_lies_there_as_plain_files(
    context: core.Context, place: StorageLocation, source: Path, tmp_path: Path
) -> None:
    checkpoint_id = context.checkpoint.upload(source, STEPS)
    assert place.files() == {f"{checkpoint_id}/{path}" for path in [*CONTENT, "metadata.json"]}
    context.checkpoint.download(checkpoint_id, tmp_path / "back")
    assert_came_back(tmp_path / "back", source)
    with context.checkpoint.restore_path(checkpoint_id) as restored:
        assert {path: (restored / path).read_bytes() for path in CONTENT} == CONTENT
        assert (restored / "nothing" / "within").is_dir()
        assert json.loads((restored / "metadata.json").read_text()) == STEPS
    assert context.checkpoint.get_metadata(checkpoint_id) == STEPS


def test_a_stored_path_comes_back_in_another_process_of_the_same_storage(
    context: core.Context, place: StorageLocation
) -> None:
    with context.checkpoint.store_path(STEPS, background=True) as (path, checkpoint_id):
        (path / "state").write_text("3")
    context.checkpoint.wait()
    with (
        core.init(checkpoint_storage=place.storage) as other,
        other.checkpoint.restore_path(checkpoint_id) as path,
    ):
        assert (path / "state").read_text() == "3"


def test_selectors_choose_on_the_way_in_and_out(context: core.Context, source: Path, tmp_path: Path) -> None:
    checkpoint_id = context.checkpoint.upload(source, STEPS, selector=lambda path: path != "model.pt")
    context.checkpoint.download(checkpoint_id, tmp_path / "back", selector=lambda path: path == "z")
    assert list_directory(tmp_path / "back") == {"z": 1}
    context.checkpoint.download(checkpoint_id, tmp_path / "all")
    assert not (tmp_path / "all" / "model.pt").exists()


def test_a_deleted_checkpoint_is_gone_with_all_its_files(
    context: core.Context, place: StorageLocation, source: Path, tmp_path: Path
) -> None:
    kept = context.checkpoint.upload(source, STEPS)
    gone = context.checkpoint.upload(source, STEPS)
    context.checkpoint.delete(gone)
    context.checkpoint.delete(gone)
    assert {name.partition("/")[0] for name in place.files()} == {kept}
    with pytest.raises(CheckpointNotFound):
        context.checkpoint.download(gone, tmp_path / "back")
    with pytest.raises(CheckpointNotFound):
        context.checkpoint.get_metadata(gone)
    context.checkpoint.download(kept, tmp_path / "back")


def test_damaged_and_missing_files_are_named(
    context: core.Context, place: StorageLocation, source: Path, tmp_path: Path
) -> None:
    checkpoint_id = context.checkpoint.upload(source, STEPS)
    place.put(f"{checkpoint_id}/model.pt", b"Weights" + CONTENT["model.pt"][7:])
    place.put(f"{checkpoint_id}/z", b"")
    with pytest.raises(DataLossError) as caught:
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
    assert "model.pt has another content" in str(caught.value)
    assert "z has 0 bytes instead of 1" in str(caught.value)
    with pytest.raises(DataLossError, match=r"model\.pt has another content"):
        context.checkpoint.restore_path(checkpoint_id).__enter__()
    place.remove(f"{checkpoint_id}/z")
    with pytest.raises((DataLossError, CheckpointNotFound), match=r"\bz\b.*(missing|gone)|gone.*\bz\b|/z'"):
        context.checkpoint.download(checkpoint_id, tmp_path / "again")


def test_a_failed_block_leaves_nothing(context: core.Context, place: StorageLocation) -> None:
    block = context.checkpoint.store_path(STEPS)
    path, checkpoint_id = block.__enter__()
    (path / "half").write_text("half")
    assert not block.__exit__(KeyError, KeyError("of the script"), None)
    assert place.files() == set()
    with pytest.raises(CheckpointNotFound):
        context.checkpoint.restore_path(checkpoint_id).__enter__()


def test_a_writer_that_was_killed_leaves_no_checkpoint(context: core.Context, place: StorageLocation) -> None:
    command = [sys.executable, "-c", UPLOAD_AND_DIE, repr(place.storage)]
    died = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert died.returncode == 9, died.stderr
    checkpoint_id = died.stdout.strip()
    assert f"{checkpoint_id}/half" in place.files()
    with pytest.raises(CheckpointNotFound, match="begun and never finished"):
        context.checkpoint.restore_path(checkpoint_id).__enter__()
    with pytest.raises(CheckpointNotFound, match="begun and never finished"):
        context.checkpoint.get_metadata(checkpoint_id)
    context.checkpoint.delete(checkpoint_id)
    assert place.files() == set()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".records"])
def test_an_identifier_leads_nowhere_else(context: core.Context, name: str, tmp_path: Path) -> None:
    for use in (
        lambda: context.checkpoint.delete(name),
        lambda: context.checkpoint.get_metadata(name),
        lambda: context.checkpoint.download(name, tmp_path / "back"),
    ):
        with pytest.raises(InvalidArgumentError, match="not an identifier of a checkpoint"):
            use()


def test_a_damaged_record_says_so(
    context: core.Context, place: StorageLocation, source: Path, tmp_path: Path
) -> None:
    checkpoint_id = context.checkpoint.upload(source, STEPS)
    place.put(f".records/{checkpoint_id}.json", b'{"finished": true')
    with pytest.raises(DataLossError, match=f"record of checkpoint {checkpoint_id} is damaged"):
        context.checkpoint.download(checkpoint_id, tmp_path / "back")


def test_a_directory_from_elsewhere_counts_and_objects_from_elsewhere_do_not(
    tmp_path: Path, bucket: S3Location
) -> None:
    foreign = fill(tmp_path / "store" / "copied", {"a": b"a", "metadata.json": b'{"x": 1}'})
    with core.init(checkpoint_storage=str(tmp_path / "store")) as context:
        with context.checkpoint.restore_path("copied") as restored:
            assert (restored / "a").read_bytes() == b"a"
        assert context.checkpoint.get_metadata("copied") == {"x": 1}
        (foreign / "metadata.json").unlink()
        with pytest.raises(CheckpointNotFound, match="has no metadata"):
            context.checkpoint.get_metadata("copied")
    bucket.put("copied/a", b"a")
    with (
        core.init(checkpoint_storage=bucket.storage) as context,
        pytest.raises(CheckpointNotFound, match="of a cluster"),
    ):
        context.checkpoint.download("copied", tmp_path / "back")


@pytest.mark.sampled(1)
def test_a_large_file_goes_in_parts_and_comes_by_several_connections(
    distant: tuple[StorageLocation, Server], tmp_path: Path
) -> None:
    place, _ = distant
    data = os.urandom(1 << 20) * (BIG >> 20) + b"end"
    source = fill(tmp_path / "source", {"big": data})
    with core.init(checkpoint_storage=place.storage) as context:
        checkpoint_id = context.checkpoint.upload(source, STEPS)
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
        assert (tmp_path / "back" / "big").read_bytes() == data
        for damaged, problem in (
            (b"", f"big has 0 bytes instead of {len(data)}"),
            (data[: 20 << 20], f"big has {20 << 20} bytes instead of {len(data)}"),
            (data[:-1] + b"x", "big has another content"),
        ):
            place.put(f"{checkpoint_id}/big", damaged)
            with pytest.raises(DataLossError, match=problem):
                context.checkpoint.download(checkpoint_id, tmp_path / "back")


# The server that speaks as Google's forgets everything when it ends.
@pytest.mark.sampled(1)
@pytest.mark.parametrize("distant", ["s3", "azure"], indirect=True)
def test_a_store_that_is_down_is_waited_for(
    distant: tuple[StorageLocation, Server], source: Path, tmp_path: Path
) -> None:
    place, server = distant
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            server.start()

    store = BucketStore(objects_of(place), prefix="down", outage_timeout=60.0, sleep=sleep)
    checkpoint_id = str(uuid.uuid4())
    server.stop()
    entries = store.write(checkpoint_id, source, ["model.pt"])
    assert 0.05 <= pauses[0] <= 0.15
    assert 0.1 <= pauses[1] <= 0.3
    assert store.list(checkpoint_id) == {"model.pt": 7000}
    store.read(checkpoint_id, tmp_path / "back", ["model.pt"], expected=entries)


@pytest.mark.sampled(1)
def test_a_store_that_stays_down_fails_in_the_end(
    distant: tuple[StorageLocation, Server], source: Path
) -> None:
    place, server = distant
    store = BucketStore(objects_of(place), outage_timeout=0.0)
    server.stop()
    try:
        with pytest.raises(UnavailableError, match="try again"):
            store.write(str(uuid.uuid4()), source, ["model.pt"])
    finally:
        server.start()


def objects_of(place: StorageLocation) -> StoreBucket:
    opened = open_store(parse_storage(place.storage))
    assert isinstance(opened, BucketStore)
    return opened._objects


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("a\\b", {"azure": "holds a backslash, which Azure"}),
        ("d./a", {"azure": "ends in a dot, which Azure"}),
        ("a.", {"azure": "ends in a dot, which Azure"}),
        ("a\nb", {"gcs": "holds a line break, which Google"}),
        ("/".join("x" * 300), {"azure": "at most 1024 in 254: use shorter names"}),
        ("/".join(["d" * 200] * 5), dict.fromkeys(("s3", "gcs", "azure"), "use shorter names")),
        (" +&%?#=;:@[]{}|^`'\"", {}),
    ],
)
def test_names_are_kept_exactly_or_refused_before_anything_is_sent(
    place: StorageLocation,
    tmp_path: Path,
    name: str,
    refusal: Mapping[str, str],
    request: pytest.FixtureRequest,
) -> None:
    source = fill(tmp_path / "source", {name: b"f", "a/b": b"another"})
    problem = refusal.get(request.node.callspec.params["place"])
    with core.init(checkpoint_storage=place.storage) as context:
        if problem:
            with pytest.raises(InvalidArgumentError, match=problem):
                context.checkpoint.upload(source, STEPS)
            assert place.files() == set()
            return
        checkpoint_id = context.checkpoint.upload(source, STEPS)
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
    assert_came_back(tmp_path / "back", source)
    assert (tmp_path / "back" / name).read_bytes() == b"f"


def test_azure_takes_the_address_of_an_account_and_a_token(
    azure: AzureServer, source: Path, tmp_path: Path
) -> None:
    storage = {
        "type": "azure",
        "container": azure.new_bucket(),
        "account_url": azure.account_url,
        "credential": azure.token(),
    }
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = context.checkpoint.upload(source, STEPS)
        context.checkpoint.download(checkpoint_id, tmp_path / "back")
    assert_came_back(tmp_path / "back", source)


def test_a_machine_with_a_cache_fetches_a_file_once(
    bucket: S3Location, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_CHECKPOINT_CACHE_DIR", str(tmp_path / "cache"))
    with core.init(checkpoint_storage=bucket.storage) as context:
        checkpoint_id = context.checkpoint.upload(source, STEPS)
        context.checkpoint.download(checkpoint_id, tmp_path / "first")
        bucket.remove(f"{checkpoint_id}/model.pt")
        context.checkpoint.download(checkpoint_id, tmp_path / "second")
    assert (tmp_path / "second" / "model.pt").read_bytes() == CONTENT["model.pt"]


def test_long_work_says_how_far_it_is(
    context: core.Context,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="resolute.core")
    monkeypatch.setattr("resolute.transfer.progress.ProgressLines.advance", _say_at_once)
    checkpoint_id = context.checkpoint.upload(source, STEPS)
    assert f"checkpoint {checkpoint_id} is " in caplog.text
    caplog.clear()
    with context.checkpoint.restore_path(checkpoint_id):
        pass
    assert f"checkpoint {checkpoint_id} is " in caplog.text
    assert "(100%)" in caplog.text


def _say_at_once(lines: Any, count: int) -> None:
    lines._done += count
    lines._say(lines._line(1.0))


def test_shards_of_several_ranks_go_to_one_checkpoint(place: StorageLocation, tmp_path: Path) -> None:
    def work(dist: core.DistributedContext) -> str:
        own = fill(tmp_path / f"rank{dist.rank}", {f"shard{dist.rank}": b"s"})
        checkpoint = core.DummyCheckpointContext(dist, open_store(parse_storage(place.storage)))
        checkpoint_id = checkpoint.upload(own, {"a": {f"of{dist.rank}": 1}}, shard=True)
        checkpoint.download(checkpoint_id, tmp_path / "back")
        return checkpoint_id

    checkpoint_id, other = rank_results(2, work)
    assert checkpoint_id == other
    assert set(list_directory(tmp_path / "back")) == {"shard0", "shard1", "metadata.json"}
