"""What scripts log beside metrics, as bytes."""

from __future__ import annotations

import io
import json
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clocks import ManualClock

from resolute.contracts.spool.format import MAX_MEDIA_BYTES, Media
from resolute.contracts.spool.media_formats import MediaKind, content_type
from resolute.core import TrainContext
from resolute.core.media.audio import audio_content
from resolute.core.media.figures import figure_content
from resolute.core.media.histograms import histogram_content
from resolute.core.media.images import image_content
from resolute.core.media.tables import table_content
from resolute.core.reporting.reporter import LogReporter
from resolute.core.reporting.trial_record import LocalTrialRecord
from resolute.core.tensorboard import LocalTensorboard
from resolute.errors import InvalidArgumentError
from resolute.spool.omissions import CountedWarnings, Omissions, Raised

PNG = b"\x89PNG\r\n\x1a\n"


class Reporter(LogReporter):
    """Keeps what was logged."""

    def __init__(self, omissions: Omissions) -> None:
        super().__init__(omissions)
        self.media: list[Media] = []

    def log_media(self, media: Media) -> None:
        self.media.append(media)


def context(reporter: Reporter, *, rank: int = 0) -> TrainContext:
    return TrainContext(
        reporter=reporter,
        record=LocalTrialRecord(),
        tensorboard=LocalTensorboard(),
        rank=rank,
        clock=ManualClock(5.0),
    )


def pixels_of(content: bytes) -> Any:
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(content)))


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 1), (3, 5, 3), (3, 5, 4), (3, 5, 2)])
def test_an_image_of_bytes_is_kept_exactly(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    read = pixels_of(image_content(pixels))
    assert np.array_equal(read, pixels.reshape(read.shape))


def test_floats_are_from_zero_to_one_and_what_is_not_is_clipped() -> None:
    pixels = np.array([[0.0, 0.5, 1.0, -1.0, 7.0, np.nan]])
    assert pixels_of(image_content(pixels)).tolist() == [[0, 128, 255, 0, 255, 0]]
    assert pixels_of(image_content(np.array([[True, False]]))).tolist() == [[255, 0]]


def test_channels_come_first_or_last() -> None:
    first = np.zeros((3, 6, 7), dtype=np.uint8)
    first[0] = 200
    assert pixels_of(image_content(first))[0, 0].tolist() == [200, 0, 0]
    assert pixels_of(image_content(first.transpose(1, 2, 0)))[0, 0].tolist() == [200, 0, 0]
    torch = pytest.importorskip("torch")
    # Of a tensor they come first, also where the shape leaves it open.
    assert pixels_of(image_content(torch.zeros(1, 2, 3))).shape == (2, 3)
    assert (
        pixels_of(image_content(torch.ones(3, 2, 4, dtype=torch.bfloat16, requires_grad=True))).max() == 255
    )


def test_files_and_pictures_are_taken_as_they_are(tmp_path: Path) -> None:
    content = image_content(np.zeros((2, 2)))
    (tmp_path / "x.png").write_bytes(content)
    assert image_content(tmp_path / "x.png") == image_content(str(tmp_path / "x.png")) == content
    assert image_content(bytearray(content)) == content
    image = pytest.importorskip("PIL.Image")
    assert pixels_of(image_content(image.new("RGB", (4, 3), "red"))).shape == (3, 4, 3)


def test_an_array_too_large_for_png_becomes_a_jpeg() -> None:
    pytest.importorskip("PIL.Image")
    noise = np.random.default_rng(1).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    content = image_content(noise)
    assert content.startswith(b"\xff\xd8\xff")
    assert content_type(MediaKind.IMAGE, content) == "image/jpeg"


def test_a_histogram_counts_what_is_finite() -> None:
    content = json.loads(histogram_content([0, 1, 2, 3, float("nan"), float("inf")], bins=2))
    assert content == {"counts": [2, 2], "edges": [0, 1.5, 3], "left_out": 2}
    with pytest.raises(ValueError, match="none of its 1 values is a finite number"):
        histogram_content([float("nan")], bins=2)
    with pytest.raises(TypeError, match="not numbers"):
        histogram_content(["a"], bins=2)


def test_tables_come_in_four_ways() -> None:
    expected = {"columns": ["a", "b"], "rows": [[1, "x"], [2.5, None]]}
    rows = [[1, "x"], [2.5, None]]
    assert json.loads(table_content(rows, ["a", "b"])) == expected
    assert json.loads(table_content([{"a": 1, "b": "x"}, {"a": 2.5}], None)) == expected
    assert json.loads(table_content({"b": ["x", None], "a": [1, 2.5]}, ["a", "b"])) == expected
    assert json.loads(table_content(zip([1, 2.5], ["x", None], strict=True), ["a", "b"])) == expected
    with pytest.raises(ValueError, match="give columns"):
        table_content(rows, None)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.5], "b": ["x", None]})
    assert json.loads(table_content(frame, None)) == {**expected, "rows": [[1.0, "x"], [2.5, None]]}


def test_single_elements_of_arrays_and_tensors_are_values() -> None:
    torch = pytest.importorskip("torch")
    table = {"p": torch.tensor([0.5, 1.0]), "label": np.array([1, 2]), "seen": [np.ones(1), torch.ones(2)]}
    content = json.loads(table_content(table, None))
    assert content["rows"] == [[0.5, 1, 1.0], [1.0, 2, "tensor([1., 1.])"]]


def test_columns_are_chosen_by_name() -> None:
    numbered = {0: [1, 2], 1: [3, 4]}
    assert json.loads(table_content(numbered, [1]))["rows"] == [[3], [4]]  # type: ignore[list-item]
    with pytest.raises(ValueError, match="it has no column 'c'; choose among a, b"):
        table_content({"a": [1], "b": [2]}, ["b", "c"])


def test_values_that_json_has_not_become_text() -> None:
    row = [np.float32(0.5), float("nan"), float("-inf"), np.int64(3), True, Path("/x"), "\ud800"]
    content = json.loads(table_content([row], list("abcdefg")))
    assert content["rows"] == [[0.5, "nan", "-inf", 3, True, "/x", "?"]]


@pytest.mark.parametrize("shape", [(100,), (100, 2), (2, 100)])
def test_samples_become_a_wav(shape: tuple[int, ...]) -> None:
    with wave.open(io.BytesIO(audio_content(np.full(shape, -2.0), sample_rate=8000))) as sound:
        assert (sound.getnchannels(), sound.getframerate()) == (len(shape), 8000)
        assert sound.getnframes() == 100
        assert sound.readframes(1)[:2] == (-32767).to_bytes(2, "little", signed=True)
    with pytest.raises(ValueError, match="sample_rate is None"):
        audio_content(np.zeros(5), sample_rate=None)


def test_figures_of_both_libraries() -> None:
    class Plotly:
        def to_plotly_json(self) -> dict[str, Any]:
            return {}

        def to_json(self) -> str:
            return '{"data": [], "layout": {}}'

    assert content_type(MediaKind.FIGURE, figure_content(Plotly())) == "application/json"
    with pytest.raises(TypeError, match="a figure of Matplotlib or Plotly was expected"):
        figure_content(3)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    axes.plot([1, 2])
    assert figure_content(figure)[:8] == figure_content(axes)[:8] == PNG


@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [
        (MediaKind.IMAGE, PNG, "image/png"),
        (MediaKind.IMAGE, b"GIF89a", "image/gif"),
        (MediaKind.IMAGE, b"RIFF....WEBPVP8 ", "image/webp"),
        (MediaKind.AUDIO, b"RIFF....WAVEfmt ", "audio/wav"),
        (MediaKind.AUDIO, b"OggS", "audio/ogg"),
        (MediaKind.AUDIO, b"fLaC", "audio/flac"),
        (MediaKind.AUDIO, b"ID3", "audio/mpeg"),
        (MediaKind.TEXT, b"<script>", "text/plain"),
        (MediaKind.FIGURE, PNG, "image/png"),
    ],
)
def test_the_type_is_found_in_the_content(kind: MediaKind, content: bytes, found: str) -> None:
    assert content_type(kind, content) == found


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (MediaKind.IMAGE, b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        (MediaKind.IMAGE, b"<?xml version='1.0'?><svg/>"),
        (MediaKind.IMAGE, b"RIFF....WAVEfmt "),
        (MediaKind.IMAGE, b""),
        (MediaKind.FIGURE, b"<svg/>"),
        (MediaKind.FIGURE, b'{"data": 1}'),
        (MediaKind.AUDIO, PNG),
        (MediaKind.TEXT, b"\xff\xfe"),
        (MediaKind.TABLE, b"[]"),
        (MediaKind.TABLE, b'{"columns": [], "rows": []}'),
        (MediaKind.TABLE, b'{"columns": ["a"], "rows": [[1, 2]]}'),
        (MediaKind.TABLE, b'{"columns": ["a"], "rows": [[[]]]}'),
        (MediaKind.TABLE, b'{"columns": [1], "rows": []}'),
        (MediaKind.TABLE, b"{" * 100_000),
        (MediaKind.HISTOGRAM, b'{"counts": [], "edges": [1]}'),
        (MediaKind.HISTOGRAM, b'{"counts": [NaN], "edges": [1, 2]}'),
        (MediaKind.TEXT, b"x" * (MAX_MEDIA_BYTES + 1)),
    ],
)
def test_everything_else_is_refused(kind: MediaKind, content: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        content_type(kind, content)


def test_records_have_names_steps_times_and_captions() -> None:
    reporter = Reporter(Raised())
    train = context(reporter)
    train.log_text("said", "hello", steps_completed=3, caption="c")
    train.log_images("grid", np.zeros((2, 2, 2)), steps_completed=4, captions=["first"])
    said, *grid = reporter.media
    assert said == Media(name="said", kind="text", steps=3, time=5.0, content=b"hello", caption="c")
    assert [(one.name, one.steps, one.caption) for one in grid] == [("grid", 4, "first"), ("grid", 4, "")]


@pytest.mark.parametrize(
    "log",
    [
        lambda train: train.log_image("x", object(), steps_completed=1),
        lambda train: train.log_image("x", np.zeros((2, 3, 4, 5)), steps_completed=1),
        lambda train: train.log_image("x", "nowhere.png", steps_completed=1),
        lambda train: train.log_image("", np.zeros((2, 2)), steps_completed=1),
        lambda train: train.log_text("x", "hello", steps_completed="soon"),
        lambda train: train.log_table("x", 3, steps_completed=1),
        lambda train: train.log_images("x", None, steps_completed=1),
        lambda train: train.log_images("x", (1 / 0 for _ in "x"), steps_completed=1),
        lambda train: train.log_text("half \ud800", "hello", steps_completed=1),
        lambda train: train.log_text("a\0b", "hello", steps_completed=1),
    ],
)
def test_what_cannot_be_logged_ends_no_training(log: Callable[[TrainContext], None]) -> None:
    lines: list[str] = []
    reporter = Reporter(CountedWarnings(lines.append))
    log(context(reporter))
    log(context(reporter))
    reporter.omissions.finish()
    assert reporter.media == []
    assert [line.partition(":")[0] for line in lines] == [
        "left out of the reports",
        "1 more left out of the reports",
    ]
    with pytest.raises(InvalidArgumentError, match="was not logged"):
        log(context(Reporter(Raised())))


def test_a_caption_becomes_text_that_every_database_takes() -> None:
    reporter = Reporter(Raised())
    context(reporter).log_text("x", "hello", steps_completed=1, caption="half \ud800 and \0 é")
    assert reporter.media[0].caption == "half ? and \ufffd é"


def test_only_rank_0_logs() -> None:
    lines: list[str] = []
    reporter = Reporter(CountedWarnings(lines.append))
    context(reporter, rank=1).log_text("said", "hello", steps_completed=3)
    assert reporter.media == []
    assert "only rank 0 reports" in lines[0]


def test_a_png_is_compressed() -> None:
    smooth = np.tile(np.linspace(0, 1, 256), (256, 1))
    assert len(image_content(smooth)) < smooth.size // 20
    assert zlib.crc32(image_content(smooth)) == zlib.crc32(image_content(smooth))
