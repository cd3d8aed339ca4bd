"""What scripts write for TensorBoard beside numbers, as media."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clocks import ManualClock

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import Media
from resolute.contracts.spool.media_formats import MediaKind, content_type
from resolute.core.media.images import image_content
from resolute.core.reporting.reporter import LogReporter
from resolute.core.tensorboard import ManualTensorboard, event_media
from resolute.core.tensorboard.event_media import EventMedia
from resolute.core.tensorboard.file_copier import FileCopier
from resolute.core.tensorboard.manager import keep_path, select_all

pytest.importorskip("tensorboard")

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

PNG = image_content(np.zeros((4, 4)))
FLOAT, DOUBLE, STRING = 1, 2, 7


class Reporter(LogReporter):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.media: list[Media] = []

    def log_media(self, media: Media) -> None:
        content_type(MediaKind(media.kind), media.content)
        self.media.append(media)


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


def event_media_of(reporter: Reporter, *, clock: Clock = SYSTEM_CLOCK) -> EventMedia:
    return EventMedia(reporter.log_media, omissions=reporter.omissions, clock=clock)


def append(path: Path, step: int, *values: Any) -> bytes:
    """Appends an event, as any writer would; returns its bytes."""
    event = event_pb2.Event(wall_time=7.0, step=step, summary=summary_pb2.Summary(value=values))
    content: bytes = event.SerializeToString()
    record = struct.pack("<QI", len(content), 0) + content + b"\0\0\0\0"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(record)
    return record


def image(tag: str, content: bytes = PNG) -> Any:
    return summary_pb2.Summary.Value(tag=tag, image={"encoded_image_string": content})


def tensor(tag: str, plugin: str, shape: tuple[int, ...], **fields: Any) -> Any:
    dims = [TensorShapeProto.Dim(size=size) for size in shape]
    return summary_pb2.Summary.Value(
        tag=tag,
        tensor=TensorProto(tensor_shape=TensorShapeProto(dim=dims), **fields),
        metadata={"plugin_data": {"plugin_name": plugin}},
    )


def by_name(reporter: Reporter) -> dict[str, list[Media]]:
    found: dict[str, list[Media]] = {}
    for media in reporter.media:
        found.setdefault(media.name, []).append(media)
    return found


def test_what_the_writer_of_pytorch_writes_becomes_media(tmp_path: Path, reporter: Reporter) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(str(tmp_path))
    writer.add_scalar("loss", 0.5, 3)
    writer.add_image("sample", np.zeros((3, 8, 8), dtype=np.uint8), 3)
    writer.add_histogram("weights", np.linspace(-1.0, 3.0, 4000), 3)
    writer.add_text("said", "**so**", 3)
    writer.add_audio("beep", torch.zeros(1, 800), 3, sample_rate=8000)
    writer.add_pr_curve("curve", np.array([0, 1]), np.array([0.1, 0.9]), 3, num_thresholds=5)
    writer.close()
    event_media_of(reporter).collect(tmp_path)

    found = by_name(reporter)
    assert {name: [(one.kind, one.steps) for one in media] for name, media in found.items()} == {
        "sample": [("image", 3)],
        "weights": [("histogram", 3)],
        "said": [("text", 3)],
        "beep": [("audio", 3)],
        "curve": [("table", 3)],
    }
    assert found["said"][0].content == b"**so**"
    weights = json.loads(found["weights"][0].content)
    assert sum(weights["counts"]) == pytest.approx(4000, abs=1)
    assert (weights["edges"][0], weights["edges"][-1]) == pytest.approx((-1, 3))
    assert min(weights["counts"]) == pytest.approx(62.5, rel=0.1)
    curve = json.loads(found["curve"][0].content)
    assert curve["columns"][:3] == ["threshold", "precision", "recall"]
    assert curve["rows"][2][:3] == [0.5, 1.0, 1.0]


def test_what_tensorflow_2_writes_becomes_media(tmp_path: Path, reporter: Reporter) -> None:
    spans = np.array([[0, 1, 2], [1, 3, 4]], dtype=np.float64)
    append(
        tmp_path / "train/events.out.tfevents.1.v2",
        5,
        tensor("samples", "images", (4,), dtype=STRING, string_val=[b"4", b"4", PNG, PNG]),
        tensor("said", "text", (2,), dtype=STRING, string_val=[b"a", b"b"]),
        tensor("weights", "histograms", (2, 3), dtype=DOUBLE, tensor_content=spans.tobytes()),
        tensor("zeros", "histograms", (2, 3), dtype=FLOAT, float_val=[0.0]),
        tensor("flat", "histograms", (1, 3), dtype=FLOAT, float_val=[2.0, 2.0, 9.0]),
        tensor("loss", "scalars", (), dtype=FLOAT, float_val=[1.0]),
    )
    event_media_of(reporter).collect(tmp_path)

    found = by_name(reporter)
    assert sorted(found) == ["flat", "said", "samples", "weights"]
    assert [one.content for one in found["samples"]] == [PNG, PNG]
    assert found["said"][0].content == b"a\nb"
    weights = json.loads(found["weights"][0].content)
    assert sum(weights["counts"]) == pytest.approx(6, abs=0.5)
    assert sum(json.loads(found["flat"][0].content)["counts"]) == pytest.approx(9, abs=0.5)


def test_each_record_is_logged_once_and_a_half_written_one_waits(tmp_path: Path, reporter: Reporter) -> None:
    path = tmp_path / "events.out.tfevents.1"
    media = event_media_of(reporter)
    append(path, 1, image("a"))
    media.collect(tmp_path)
    record = append(path, 2, image("b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    media.collect(tmp_path)
    assert [one.name for one in reporter.media] == ["a"]
    path.write_bytes(whole)
    media.collect(tmp_path)
    media.collect(tmp_path)
    assert [(one.name, one.steps) for one in reporter.media] == [("a", 1), ("b", 2)]
    assert record in whole


def test_what_is_no_picture_is_left_out_and_the_rest_is_logged(tmp_path: Path, reporter: Reporter) -> None:
    append(tmp_path / "events.out.tfevents.1", 1, image("bad", b"<svg onload=alert(1)>"), image("good"))
    append(tmp_path / "events.out.tfevents.2", 1, tensor("odd", "histograms", (2, 3), dtype=3))
    event_media_of(reporter).collect(tmp_path)
    assert [one.name for one in reporter.media] == ["good"]


def test_numbers_in_bytes_are_bounded_too(
    tmp_path: Path, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_media, "_MOST_NUMBERS", 8)
    value = tensor("many", "histograms", (3, 3), dtype=2, tensor_content=struct.pack("<9d", *range(9)))
    append(tmp_path / "events.out.tfevents.1", 1, value, image("good"))
    event_media_of(reporter).collect(tmp_path)
    assert [one.name for one in reporter.media] == ["good"]


def test_a_file_that_is_none_ends_no_training(
    tmp_path: Path, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.tfevents").write_bytes(struct.pack("<QI", 3, 0) + b"\xff\xff\xff\0\0\0\0")
    media = event_media_of(reporter)
    media.collect(tmp_path)
    append(tmp_path / "b.tfevents", 1, image("a"))
    media.collect(tmp_path)
    assert not reporter.media
    assert caplog.text.count("media in TensorBoard files are not shown any more") == 1


def test_what_takes_long_waits_for_the_next_call(tmp_path: Path, reporter: Reporter) -> None:
    path = tmp_path / "events.out.tfevents.1"
    for step in range(3):
        append(path, step, image("a"))

    class Slow(ManualClock):
        def monotonic(self) -> float:
            self.advance(event_media.MOST_SECONDS * 0.6)
            return super().monotonic()

    media = event_media_of(reporter, clock=Slow())
    media.collect(tmp_path)
    assert len(reporter.media) == 2
    media.collect(tmp_path)
    assert [one.steps for one in reporter.media] == [0, 1, 2]


def test_media_come_with_copies_and_without_a_place_for_files(tmp_path: Path, reporter: Reporter) -> None:
    manual = ManualTensorboard(tmp_path, FileCopier(None, media=event_media_of(reporter)), rank=0)
    append(manual.path / "events.out.tfevents.1", 1, image("a"))
    append(manual.path / "events.out.tfevents.1.reports", 1, image("not looked at"))
    manual.upload(select_all, keep_path)
    assert [one.name for one in reporter.media] == ["a"]
