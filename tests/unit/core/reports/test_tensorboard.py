"""TensorBoard files: events of reports, and copies."""

import importlib
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.object_stores.s3 import s3_server

from resolute.core.tensorboard import AutoTensorboard, ManualTensorboard
from resolute.core.tensorboard.destinations import DirectoryDestination, open_destination
from resolute.core.tensorboard.event_thread import EventThread
from resolute.core.tensorboard.events import EventFile, SpoolTail
from resolute.core.tensorboard.file_copier import FileCopier
from resolute.spool.report_writer import ReportWriter
from resolute.tensorboard import (
    BatchMetricWriter,
    MetricWriter,
    TensorboardManager,
    build,
    get_experiment_sync_path,
    get_sync_path,
    util,
)


class Written(MetricWriter):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.calls.append((name, value, step))

    def reset(self) -> None:
        self.calls.append(("reset",))

    def flush(self) -> None:
        self.calls.append(("flush",))


def test_batches_and_validations_are_written_under_the_documented_names() -> None:
    clock, written = ManualClock(), Written()
    writer = BatchMetricWriter(written, clock=clock)
    batches: list[dict[str, Any]] = [{"loss": 2.0}, {"loss": 1.0, "text": "x"}]
    writer.on_train_step_end(10, {"loss": 1.5, "lr": 0.1, "good": True}, batches)
    writer.on_validation_step_end(10, {"loss": 0.5, "val_error": 3})
    clock.advance(1.0)
    writer.on_validation_step_end(11, {})
    assert written.calls == [
        ("Determined/loss", 2.0, 8),
        ("Determined/loss", 1.0, 9),
        ("Determined/lr", 0.1, 10),
        ("reset",),
        ("Determined/val_loss", 0.5, 10),
        ("Determined/val_error", 3.0, 10),
        ("flush",),
        ("reset",),
    ]


def test_the_documented_paths_of_events() -> None:
    assert str(get_sync_path("c", "1", "2")) == "c/tensorboard/experiment/1/trial/2"
    assert str(get_experiment_sync_path("c", "1")) == "c/tensorboard/experiment/1"


def read_events(directory: Path) -> list[tuple[str, int, float]]:
    loader: Any = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")

    scalars: list[tuple[str, int, float]] = []
    for path in directory.rglob("events.out.tfevents.*"):
        for event in loader.EventFileLoader(str(path)).Load():
            scalars += [(value.tag, event.step, _scalar(value)) for value in event.summary.value]
    return scalars


def _scalar(value: Any) -> float:
    return float(value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value)


def test_every_reported_number_becomes_an_event(tmp_path: Path) -> None:
    spool, target = tmp_path / "spool", tmp_path / "kept"
    spool.mkdir()
    writer = ReportWriter(spool, segment_bytes=400)
    path = tmp_path / "local"
    copier = FileCopier(DirectoryDestination(target))
    thread = EventThread(SpoolTail(spool, writer.pattern), EventFile(path), copy=lambda: copier.copy(path))
    auto = AutoTensorboard(path, copier, events=thread)
    auto.start()
    for step in range(20):
        writer.report(
            "training", step, {"loss": step / 2, "note": "text"} if step % 5 == 0 else {"loss": step / 2}
        )
    writer.report("validation", 20, {"accuracy": 0.25})
    auto.close()

    events = read_events(target)
    assert ("validation/accuracy", 20, 0.25) in events
    training = [(step, value) for tag, step, value in events if tag == "training/loss"]
    assert training == [(step, step / 2) for step in range(20)]
    assert not [thread for thread in threading.enumerate() if thread.name == "resolute-tensorboard"]


def test_without_reports_there_is_no_event_file(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = ReportWriter(spool)
    events = EventThread(SpoolTail(spool, writer.pattern), EventFile(tmp_path / "local"), copy=lambda: None)
    auto = AutoTensorboard(
        tmp_path / "local", FileCopier(DirectoryDestination(tmp_path / "kept")), events=events
    )
    auto.start()
    auto.close()
    assert not (tmp_path / "kept").exists()


def test_files_of_the_script_are_copied_when_they_have_changed(tmp_path: Path) -> None:
    local, kept = tmp_path / "local", tmp_path / "kept"
    manual = ManualTensorboard(local, FileCopier(DirectoryDestination(kept)), rank=2)
    (manual.path / "sub").mkdir()
    (manual.path / "sub" / "events").write_text("one")
    (manual.path / "other").write_text("two")

    manual.upload(lambda path: path.name != "other", lambda path, rank: Path(f"rank{rank}") / path)
    assert [path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()] == [
        "rank2/sub/events"
    ]

    copied = kept / "rank2" / "sub" / "events"
    copied.unlink()
    manual.upload(lambda path: path.name != "other", lambda path, rank: Path(f"rank{rank}") / path)
    assert not copied.exists()

    (manual.path / "sub" / "events").write_text("changed")
    manual.upload(lambda path: path.name != "other", lambda path, rank: Path(f"rank{rank}") / path)
    assert copied.read_text() == "changed"


def test_in_auto_mode_there_is_nothing_to_ask_for(tmp_path: Path) -> None:
    auto = AutoTensorboard(tmp_path, FileCopier(None), events=None)
    with pytest.raises(RuntimeError, match=r"TensorboardMode\.MANUAL"):
        auto.upload(lambda _: True, lambda path, _: path)


def test_a_full_or_missing_destination_is_no_reason_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    local = tmp_path / "local"
    local.mkdir()
    (local / "events").write_text("one")
    FileCopier(DirectoryDestination(tmp_path / "file" / "below")).copy(local)
    assert "was not copied" in caplog.text


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_manager_keeps_changed_files_beside_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    storage = {"type": "shared_fs", "host_path": str(tmp_path), "storage_path": "kept"}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    kept = tmp_path / "kept" / get_sync_path("c", "1", "2")
    with build("c", "1", "2", storage, async_upload=asynchronous) as manager:
        assert isinstance(manager, TensorboardManager)
        (manager.base_path / "below").mkdir()
        (manager.base_path / "below" / "events").write_text("one")
        (manager.base_path / "left").write_text("out")
        manager.sync(
            lambda path: path.name != "left", lambda path, rank: path.with_suffix(f".{rank}"), rank=3
        )
        manager.sync(lambda path: path.name != "left")
    assert (kept / "below" / "events.3").read_text() == "one"
    # What was copied and has not changed does not go again, under whatever name.
    assert sorted(path.name for path in kept.rglob("*") if path.is_file()) == ["events.3", "left"]
    manager.delete()
    assert not kept.exists()


def test_a_manager_keeps_files_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with s3_server(tmp_path / "server") as server:
        bucket = server.new_bucket()
        with build("c", "1", None, server.section(bucket), async_upload=False) as manager:
            (manager.base_path / "events").write_text("one")
        assert server.objects(bucket) == {"team/a/c/tensorboard/experiment/1/events": 3}
        manager.delete()
        assert server.objects(bucket) == {}


def test_a_copy_of_a_bucket_grows_with_its_objects(tmp_path: Path) -> None:
    with s3_server(tmp_path / "server") as server:
        storage = server.section(server.new_bucket())
        kept = open_destination(storage, get_experiment_sync_path("c", "1"), container_path=None)
        other = open_destination(storage, get_experiment_sync_path("c", "10"), container_path=None)
        (source := tmp_path / "source").write_text("one")
        kept.put(source, "trial/1/events")
        other.put(source, "trial/2/events")
        copy = kept.fetch(tmp_path / "copy")
        with (copy / "trial/1/events").open() as opened:
            assert opened.read() == "one"
            source.write_text("one and two")
            kept.put(source, "trial/1/events")
            assert kept.fetch(tmp_path / "copy") == copy
            assert opened.read() == " and two", "a reader that holds the file sees what is new"
        source.write_text("new")
        kept.put(source, "trial/1/events")
        kept.fetch(copy)
        assert [path.read_text() for path in copy.rglob("*") if path.is_file()] == ["new"]


@pytest.mark.parametrize("storage", [{}, {"type": 3}, {"type": "floppy"}])
def test_a_manager_wants_a_known_type_of_storage(storage: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="type"):
        build("c", "1", "2", storage)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("host_5.1700000000.pt.trace.json", "host_5#2.1700000000.pt.trace.json"),
        ("host_5.1700000000.pt.trace.json.gz", "host_5#2.1700000000.pt.trace.json.gz"),
        ("host.xplane.pb", "host#2.xplane.pb"),
        ("host.trace.json.gz", "host#2.trace.json.gz"),
        ("events.out.tfevents.1.host", "events.out.tfevents.1.host"),
    ],
)
def test_profiles_of_ranks_have_names_of_their_own(name: str, expected: str) -> None:
    assert util.get_rank_aware_path(Path("plugins") / name, 2) == Path("plugins") / expected
