"""Logs images, histograms, texts, sounds and precision-recall curves of TensorBoard files as media."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import Media
from resolute.contracts.spool.media_formats import MediaKind
from resolute.core.media.histograms import ranges_content
from resolute.core.media.records import new_media
from resolute.core.media.tables import table_content
from resolute.core.tensorboard.events import REPORTS_SUFFIX
from resolute.core.tensorboard.record_tail import RecordTail
from resolute.errors import InvalidArgumentError
from resolute.spool.omissions import Omissions

MOST_SECONDS = 5.0
"""How long a checkpoint and the end of a run may wait for media."""
_TEXT_SUFFIX = "/text_summary"
"""What PyTorch's writer appends to the names of texts."""
_CURVE_COLUMNS = ("threshold", "precision", "recall", "true positives", "false positives")
_CURVE_ROWS = (4, 5, 0, 1)
"""Where these are in what TensorBoard stores, after the threshold."""
_MOST_NUMBERS = 1 << 20
"""Of a histogram or a curve; what has more is left out."""
_log = logging.getLogger("resolute.core")


class EventMedia:
    """Logs the media of event files, within the limits of media.

    Args:
        log: Receives the media.
        omissions: Receives media that cannot be logged.
        clock: Measures the work.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(
        self, log: Callable[[Media], None], *, omissions: Omissions, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        # Here and not later in a thread: a process forked during an import can wait for it forever.
        import numpy as np  # noqa: F401
        from tensorboard.compat.proto import event_pb2

        self._parse: Callable[[bytes], Any] = event_pb2.Event.FromString
        self._log = log
        self._omissions = omissions
        self._clock = clock
        self._tails: dict[Path, RecordTail] = {}
        self._lock = threading.Lock()
        self._broken = False

    def collect(self, directory: Path) -> None:
        """Logs what has been written since the last call, for a few seconds; the rest with the next call.

        Args:
            directory: Where files lie, also in directories of it.
        """
        if self._broken:
            return
        deadline = self._clock.monotonic() + MOST_SECONDS
        try:
            with self._lock:
                for path in sorted(directory.rglob("*tfevents*")):
                    if not path.name.endswith(REPORTS_SUFFIX):
                        self._collect_file(path, deadline)
        except Exception as failure:  # noqa: BLE001 - no picture is worth a training, whatever a file has
            self._broken = True
            _log.warning("media in TensorBoard files are not shown any more: %s; the files are kept", failure)

    def _collect_file(self, path: Path, deadline: float) -> None:
        for record in self._tails.setdefault(path, RecordTail(path)).read():
            event = self._parse(record)
            for value in event.summary.value:
                for kind, make in _contents(value):
                    self._log_one(kind, make, value.tag.removesuffix(_TEXT_SUFFIX), event)
            if self._clock.monotonic() > deadline:
                return

    def _log_one(self, kind: MediaKind, make: Callable[[], bytes], name: str, event: Any) -> None:
        try:
            media = new_media(
                kind, name=name, steps=max(event.step, 0), time=event.wall_time, content=make(), caption=""
            )
        except (InvalidArgumentError, ValueError, IndexError) as error:
            problem = InvalidArgumentError(f"{kind.value} {name!r} of a TensorBoard file: {error}")
            self._omissions.leave_out(f"{kind.value}s that cannot be logged", problem)
            return
        self._log(media)


def _contents(value: Any) -> Iterator[tuple[MediaKind, Callable[[], bytes]]]:
    """What a value of a summary holds, as PyTorch and TensorFlow 1 write it, or as TensorFlow 2 does."""
    field = value.WhichOneof("value")
    if field == "image":
        yield MediaKind.IMAGE, lambda: value.image.encoded_image_string
    elif field == "audio":
        yield MediaKind.AUDIO, lambda: value.audio.encoded_audio_string
    elif field == "histo":
        yield MediaKind.HISTOGRAM, lambda: _histogram(value.histo)
    elif field == "tensor":
        yield from _tensor_contents(value.metadata.plugin_data.plugin_name, value.tensor)


def _tensor_contents(plugin: str, tensor: Any) -> Iterator[tuple[MediaKind, Callable[[], bytes]]]:
    texts = list(tensor.string_val)
    if plugin == "images":  # width and height come first
        yield from ((MediaKind.IMAGE, lambda image=image: image) for image in texts[2:])
    elif plugin == "audio":  # a sound and its label, by turns
        yield from ((MediaKind.AUDIO, lambda sound=sound: sound) for sound in texts[::2])
    elif plugin == "text":
        yield MediaKind.TEXT, lambda: b"\n".join(texts)
    elif plugin == "histograms":
        yield MediaKind.HISTOGRAM, lambda: _ranges(_numbers(tensor))
    elif plugin == "pr_curves":
        yield MediaKind.TABLE, lambda: _curve(_numbers(tensor))


def _histogram(histogram: Any) -> bytes:
    rights = list(histogram.bucket_limit)
    lefts = [histogram.min, *rights[:-1]]
    spans = zip(lefts, rights, histogram.bucket, strict=True)
    # The outermost limits are those of all numbers.
    least, most = histogram.min, histogram.max
    return ranges_content([(max(left, least), min(right, most), count) for left, right, count in spans])


def _ranges(numbers: Any) -> bytes:
    return ranges_content([(left, right, count) for left, right, count in numbers.tolist()])


def _curve(numbers: Any) -> bytes:
    count = numbers.shape[1]
    thresholds = [number / max(count - 1, 1) for number in range(count)]
    rows = zip(thresholds, *(numbers[row].tolist() for row in _CURVE_ROWS), strict=True)
    return table_content([list(row) for row in rows], _CURVE_COLUMNS)


def _numbers(tensor: Any) -> Any:
    """The numbers of a tensor, in its shape."""
    import numpy as np

    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_content:
        kind = {1: np.float32, 2: np.float64}.get(tensor.dtype)
        if kind is None:
            raise ValueError("its numbers are not floating-point ones of 32 or 64 bits")
        _require_few(len(tensor.tensor_content) // np.dtype(kind).itemsize)
        return np.frombuffer(tensor.tensor_content, kind).reshape(shape)
    numbers = np.asarray(tensor.double_val or tensor.float_val, dtype=np.float64)
    # One number may stand for all that are equal to the last.
    wanted = math.prod(shape)
    _require_few(wanted)
    return np.pad(numbers, (0, wanted - len(numbers)), mode="edge").reshape(shape)


def _require_few(numbers: int) -> None:
    if numbers > _MOST_NUMBERS:
        raise ValueError(f"it has {numbers} numbers and may have {_MOST_NUMBERS}")
