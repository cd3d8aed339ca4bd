"""Checkpoints by the command line and by scripts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.checkpoints.v1 import checkpoint_pb2, storage_pb2
from resolute.api.experiments.v1 import trial_pb2
from resolute.client.downloads.paths import DownloadPaths
from resolute.client.schema import convert
from resolute.errors import UnavailableError

FILES = {"model.pt": b"m" * 5000, "sub/extra.txt": b"extra"}


def trained(cluster: ScriptedCluster) -> trial_pb2.Trial:
    """A trial with three checkpoints, the second the best."""
    state = cluster.state
    trial = state.add_trial(state.add_experiment())
    for steps, accuracy in ((10, 0.5), (20, 0.9), (30, 0.7)):
        state.add_checkpoint(trial, FILES, steps=steps)
        state.add_report(trial, steps=steps, accuracy=accuracy, loss=1 - accuracy)
    return trial


def downloaded(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_checkpoints_are_listed_with_their_validations(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trained(cluster)
    rows = list(csv.DictReader(io.StringIO(resolute("e", "lc", "1", "--csv").out)))
    assert [(row["steps"], row["accuracy"]) for row in rows] == [("30", "0.7"), ("20", "0.9"), ("10", "0.5")]
    best = json.loads(resolute("e", "list-checkpoints", "1", "--best", "2", "--json").out)
    assert [item["validation_metrics"]["accuracy"] for item in best] == [0.9, 0.7]
    assert "4.9 KiB" in resolute("c", "list", "--trial", "1").out
    assert resolute("c", "ls", "1", "--csv").out == resolute("e", "lc", "1", "--csv").out
    assert resolute("c", "list").code == 2


def test_a_checkpoint_is_described_with_its_files(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trained(cluster)
    uuid = cluster.state.checkpoints[1].checkpoint_id
    text = resolute("c", "describe", uuid).out
    for expected in (uuid, "model.pt", "sha256:", "accuracy=0.9", "lr=0.1"):
        assert expected in text
    described = json.loads(resolute("c", "describe", uuid, "--json").out)
    assert described[0]["validation_metrics"] == {"accuracy": 0.9, "loss": pytest.approx(0.1)}


def test_a_file_whose_bytes_an_earlier_checkpoint_sent_says_where_they_lie(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trained(cluster)
    first, second = cluster.state.checkpoints[:2]
    assert "Lies at" not in resolute("c", "describe", second.checkpoint_id).out
    path = second.files[0].path
    second.files[0].location.CopyFrom(
        checkpoint_pb2.FileLocation(checkpoint_id=first.checkpoint_id, path=path)
    )
    text = resolute("c", "describe", second.checkpoint_id).out
    assert "Lies at" in text
    assert f"{first.checkpoint_id}/{path}" in text


def test_a_checkpoint_is_downloaded_through_the_service(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    trained(cluster)
    uuid = cluster.state.checkpoints[0].checkpoint_id
    outcome = resolute("c", "download", uuid)
    assert outcome.out == f"checkpoint {uuid} (step 10) is in downloads/{uuid}\n"
    files = downloaded(tmp_path / "downloads" / uuid)
    assert json.loads(files.pop("metadata.json")) == {"steps_completed": 10}
    assert files == FILES
    served = len(cluster.state.served_files)
    assert resolute("c", "download", uuid, "-q").out == f"downloads/{uuid}\n"
    assert len(cluster.state.served_files) == served


def test_an_interrupted_download_goes_on_where_it_stopped(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    trial = cluster.state.add_trial(cluster.state.add_experiment())
    files = {"model.pt": FILES["model.pt"]}
    uuid = cluster.state.add_checkpoint(trial, files, steps=10).checkpoint_id
    cluster.state.faults["ReadFile midway"] = [None, None, UnavailableError("stopping")]
    outcome = resolute("c", "download", uuid, "-o", "here")
    assert outcome.code == 1
    assert "stopping" in outcome.err
    assert not (tmp_path / "here" / "metadata.json").exists()
    assert resolute("c", "download", uuid, "-o", "here").code == 0
    assert cluster.state.served_files == [("model.pt", 0), ("model.pt", 3000)]
    assert {**downloaded(tmp_path / "here"), "metadata.json": b""} == {**files, "metadata.json": b""}


def test_a_machine_with_a_cache_fetches_a_file_once(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_CHECKPOINT_CACHE_DIR", str(tmp_path / "cache"))
    trained(cluster)
    first, second = (checkpoint.checkpoint_id for checkpoint in cluster.state.checkpoints[:2])
    assert resolute("c", "download", first, "-o", "one").code == 0
    served = list(cluster.state.served_files)
    # Another checkpoint of the same files, and a file of the cache that somebody has changed.
    (kept,) = [path for path in (tmp_path / "cache").glob("??/*") if path.read_bytes() == b"extra"]
    kept.write_bytes(b"EXTRA")
    assert resolute("c", "download", second, "-o", "two").code == 0
    assert cluster.state.served_files == [*served, ("sub/extra.txt", 0)]
    assert {**downloaded(tmp_path / "two"), "metadata.json": b""} == {**FILES, "metadata.json": b""}
    monkeypatch.setenv("RESOLUTE_CHECKPOINT_CACHE_DIR", "cache")
    refused = resolute("c", "download", second, "-o", "three")
    assert (refused.code, "give the absolute path of a local directory" in refused.err) == (1, True)


def test_a_store_on_this_machine_is_copied_from(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    trial = trained(cluster)
    store = tmp_path / "store"
    storage = storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(store)))
    files = {**FILES, "metadata.json": b'{"steps_completed": 40}'}
    message = cluster.state.add_checkpoint(trial, files, steps=40, storage=storage)
    for name, content in files.items():
        path = store / message.checkpoint_id / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert resolute("c", "download", message.checkpoint_id, "--mode", "direct").code == 0
    assert downloaded(tmp_path / "downloads" / message.checkpoint_id) == files
    assert cluster.state.served_files == []


def test_a_store_elsewhere_cannot_be_asked_directly(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trained(cluster)
    outcome = resolute("c", "download", cluster.state.checkpoints[0].checkpoint_id, "--mode", "direct")
    assert outcome.code == 1
    assert "cannot be reached from here; download it through the service (mode master)" in outcome.err


def test_damaged_bytes_are_noticed(cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path) -> None:
    trained(cluster)
    uuid = cluster.state.checkpoints[0].checkpoint_id
    cluster.state.files[uuid, "model.pt"] = b"M" * 5000
    outcome = resolute("c", "download", uuid)
    assert outcome.code == 1
    assert outcome.err.startswith("error: model.pt arrived with 5000 of 5000 bytes, or with other content")
    assert "model.pt" not in downloaded(tmp_path / "downloads" / uuid)
    assert not (tmp_path / "downloads" / uuid / "metadata.json").exists()


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "a/../../evil", ""])
def test_a_file_that_climbs_out_is_not_written(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path, path: str
) -> None:
    trial = cluster.state.add_trial(cluster.state.add_experiment())
    message = cluster.state.add_checkpoint(trial, {path: b"x"}, steps=1)
    outcome = resolute("c", "download", message.checkpoint_id)
    assert outcome.code == 1
    assert "outside of it; it was not downloaded" in outcome.err
    assert not (tmp_path / "downloads" / "evil").exists()
    assert not (tmp_path / "evil").exists()


def test_a_full_disk_is_named(cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path) -> None:
    trained(cluster)
    message = cluster.state.checkpoints[0]
    record = convert.checkpoint(message)
    partial = DownloadPaths(tmp_path / "here", record).partial(record.files[0])
    partial.parent.mkdir(parents=True)
    partial.symlink_to("/dev/full")
    outcome = resolute("c", "download", message.checkpoint_id, "-o", "here")
    assert outcome.code == 1
    assert outcome.err == (
        "error: cannot write here/model.pt: No space left on device; "
        "free some space and download again: it goes on here\n"
    )


def test_an_unfinished_checkpoint_is_not_downloaded(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trained(cluster)
    cluster.state.checkpoints[0].state = checkpoint_pb2.CHECKPOINT_STATE_UPLOADING
    outcome = resolute("c", "download", cluster.state.checkpoints[0].checkpoint_id)
    assert "is UPLOADING; only committed ones can be downloaded" in outcome.err


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (("--latest",), 30),
        (("--best",), 20),
        (("--best", "--sort-by", "loss", "--smaller-is-better", "false"), 10),
    ],
)
def test_a_trials_checkpoint_is_chosen(
    cluster: ScriptedCluster, resolute: CommandLine, options: tuple[str, ...], steps: int
) -> None:
    trained(cluster)
    assert f"(step {steps})" in resolute("t", "download", "1", *options).out


def test_a_metric_that_no_checkpoint_of_a_trial_has_chooses_none(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trained(cluster)
    outcome = resolute("t", "download", "1", "--best", "--sort-by", "los", "--smaller-is-better", "true")
    assert outcome.code == 1
    assert "no checkpoint of trial 1 has a validation with the metric 'los'" in outcome.err


def test_a_trials_checkpoint_must_be_one_of_its_own(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trained(cluster)
    other = cluster.state.add_trial(cluster.state.experiments[0])
    message = cluster.state.add_checkpoint(other, FILES, steps=1)
    outcome = resolute("t", "download", "1", "--uuid", message.checkpoint_id)
    assert outcome.err == f"error: checkpoint {message.checkpoint_id} is not one of trial 1\n"
    assert resolute("t", "download", "2", "--uuid", message.checkpoint_id).code == 0


@pytest.mark.parametrize(
    "options", [(), ("--best", "--latest"), ("--latest", "--sort-by", "loss", "--smaller-is-better", "true")]
)
def test_the_choice_must_be_clear(resolute: CommandLine, options: tuple[str, ...]) -> None:
    assert resolute("t", "download", "1", *options).code == 2


def test_a_trial_without_checkpoints_has_nothing_to_download(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_trial(cluster.state.add_experiment())
    assert (
        resolute("t", "download", "1", "--best").err
        == "error: trial 1 has no checkpoint: its script saved none, or all were deleted\n"
    )


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ((), [25]),
        (("--top-n", "3"), [25, 20, 15]),
        (("--top-n", "9"), [25, 20, 15, 30, 10, 40]),
        (("--sort-by", "loss", "--smaller-is-better", "false", "--top-n", "2"), [10, 30]),
    ],
)
def test_the_best_checkpoints_of_an_experiment_are_downloaded(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    tmp_path: Path,
    options: tuple[str, ...],
    steps: list[int],
) -> None:
    trained(cluster)
    other = cluster.state.add_trial(cluster.state.experiments[0])
    for at, accuracy in ((15, 0.8), (25, 0.95)):
        cluster.state.add_checkpoint(other, FILES, steps=at)
        cluster.state.add_report(other, steps=at, accuracy=accuracy, loss=1 - accuracy)
    unrated = cluster.state.add_checkpoint(other, FILES, steps=40)
    unfinished = cluster.state.add_checkpoint(other, FILES, steps=50)
    unfinished.state = checkpoint_pb2.CHECKPOINT_STATE_UPLOADING
    lines = resolute("e", "download", "1", "-o", "here", "-q", *options).out.splitlines()
    by_uuid = {each.checkpoint_id: each.steps_completed for each in cluster.state.checkpoints}
    assert [by_uuid[Path(line).name] for line in lines] == steps
    assert all((tmp_path / line / "model.pt").read_bytes() == FILES["model.pt"] for line in lines)
    assert unrated.steps_completed == 40


def test_the_best_checkpoints_go_where_single_ones_go(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trained(cluster)
    best = cluster.state.checkpoints[1].checkpoint_id
    assert resolute("e", "download", "1", "-q").out == f"downloads/{best}\n"


def test_a_download_of_an_experiment_says_what_it_lacks(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_trial(cluster.state.add_experiment())
    assert (
        resolute("e", "download", "1").err
        == "error: experiment 1 has no checkpoint: its script saved none, or all were deleted\n"
    )
    assert resolute("e", "download", "1", "--sort-by", "loss").code == 2
    trained(cluster)
    refused = resolute("e", "download", "2", "--sort-by", "lossy", "--smaller-is-better", "true").err
    assert refused.startswith(
        "error: no checkpoint of experiment 2 has a validation with the metric 'lossy'; "
    )


def test_checkpoints_are_deleted_after_a_question(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trained(cluster)
    first, second, third = (each.checkpoint_id for each in cluster.state.checkpoints)
    assert resolute("c", "delete", first).code != 0
    assert cluster.state.checkpoints[0].state == checkpoint_pb2.CHECKPOINT_STATE_COMPLETED
    said = resolute("c", "delete", f"{first},{second}", "--yes")
    assert said.out.splitlines() == [f"checkpoint {first} is DELETED", f"checkpoint {second} is DELETED"]
    assert resolute("c", "rm", third, "--glob", "sub/**", "--glob", "*.txt", "-y").code == 0
    assert cluster.state.globs == ["sub/**", "*.txt"]


def test_sound_checkpoints_are_verified_and_damaged_files_are_named(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trained(cluster)
    uuid = cluster.state.checkpoints[0].checkpoint_id
    sound = resolute("c", "verify", uuid, "--mode", "master")
    assert (sound.code, sound.out) == (0, f"checkpoint {uuid} (4.9 KiB): 2 files are sound\n")
    cluster.state.files[uuid, "model.pt"] = b"M" + b"m" * 4999
    cluster.state.files[uuid, "sub/extra.txt"] = b"ext"
    damaged = resolute("c", "verify", uuid, "--mode", "master")
    assert damaged.code == 1
    assert "2 of 2 files are damaged" in damaged.out
    assert "model.pt has another content than was committed" in damaged.err
    assert "sub/extra.txt has 3 bytes instead of 5" in damaged.err


def test_a_store_is_examined_by_the_cluster(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    sound = resolute("storage", "doctor", "--directory", "/data")
    assert (sound.code, sound.out) == (0, "ok      write: directory /data\n")
    broken = resolute("storage", "doctor", "--bucket", "broken", "--prefix", "/a/", "--json")
    assert broken.code == 1
    assert json.loads(broken.out) == [{"step": "write", "passed": False, "detail": "bucket broken/a"}]
    assert resolute("storage", "doctor").code == 2
