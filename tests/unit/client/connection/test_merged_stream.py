"""Several streams read as one queue."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from resolute.client.connection.merged_stream import MergedStream


class Source:
    """A stream without items that ends once it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def __iter__(self) -> Iterator[object]:
        self.cancelled.wait()
        yield from ()

    def cancel(self) -> None:
        self.cancelled.set()


def test_ctrl_c_while_a_thread_starts_stays_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    read, never_read = Source(), Source()

    def add_both() -> None:
        with MergedStream() as merged:
            merged.add(read, name="read")
            monkeypatch.setattr(threading.Thread, "start", interrupted)
            merged.add(never_read, name="never-read")

    with pytest.raises(KeyboardInterrupt):
        add_both()
    assert read.cancelled.is_set()
    assert never_read.cancelled.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "read"]
