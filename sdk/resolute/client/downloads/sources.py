"""Where the bytes of a checkpoint's files come from."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.schema.records import CheckpointRecord, DirectoryStorage
from resolute.errors import FailedPreconditionError, NotFoundError, UnavailableError
from resolute.transfer.retries import retry_transfer, retry_with_new_url
from resolute.transfer.transport import ObjectMissingError, Transport

Sink = Callable[[bytes | memoryview], None]
"""Gets bytes piece by piece, in order."""
OUTAGE_TIMEOUT = 60.0
"""Seconds that a store which is away or busy is waited for."""
_PIECE = 1 << 18
_CONNECT_TIMEOUT = 3.0
_URLS_AT_ONCE = 250
"""Of the longest names there are, so many URLs fit a message."""


class DownloadMode(Enum):
    """Which way the bytes of a checkpoint come."""

    DIRECT = "direct"
    """From the store itself."""
    MASTER = "master"
    """Through the checkpoints service."""
    AUTO = "auto"
    """From the store if it can be reached, else through the service."""


class Source(Protocol):
    """Gives the bytes of a checkpoint's files, to several threads at once."""

    is_local: bool
    """Whether they lie on this machine, where keeping copies gains nothing."""

    def read(self, path: str, offset: int, take: Sink) -> None:
        """Hands over the bytes of one file from ``offset`` on."""


@contextlib.contextmanager
def open_source(
    checkpoint: CheckpointRecord,
    registry: Checkpoints,
    mode: DownloadMode,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Source]:
    """Finds the way to the bytes of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        registry: The checkpoints service.
        mode: Which way they shall come.
        sleep: Waits some seconds for a store that is away.

    Yields:
        What gives them, until the block ends.

    Raises:
        FailedPreconditionError: The store cannot be reached directly, and ``mode`` wants that.
    """
    with Transport() as transport:
        direct = None
        if mode is not DownloadMode.MASTER:
            direct = _direct(checkpoint, registry, transport, sleep)
            if direct is None and mode is DownloadMode.DIRECT:
                raise FailedPreconditionError(
                    f"checkpoint {checkpoint.uuid} lies in {checkpoint.storage}, which cannot be reached "
                    "from here; download it through the service (mode master)"
                )
        yield direct or _ServiceSource(checkpoint.uuid, registry)


def _direct(
    checkpoint: CheckpointRecord,
    registry: Checkpoints,
    transport: Transport,
    sleep: Callable[[float], None],
) -> Source | None:
    if isinstance(checkpoint.storage, DirectoryStorage):
        directory = Path(checkpoint.storage.path) / checkpoint.uuid
        with contextlib.suppress(OSError):
            next(directory.iterdir(), None)
            return _DirectorySource(directory)
        return None
    links = _PresignedUrls(checkpoint, registry)
    first = links.first()
    return _UrlSource(links, transport, sleep) if first and _reachable(first) else None


def _reachable(url: str) -> bool:
    """Whether somebody listens where a URL leads: the store may be known inside of the cluster only."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with (
        contextlib.suppress(OSError),
        socket.create_connection((parts.hostname or "", port), _CONNECT_TIMEOUT),
    ):
        return True
    return False


class _ServiceSource:
    is_local = False

    def __init__(self, uuid: str, registry: Checkpoints) -> None:
        self._uuid = uuid
        self._registry = registry

    def read(self, path: str, offset: int, take: Sink) -> None:
        for piece in self._registry.read(self._uuid, path, offset=offset):
            take(piece)


class _DirectorySource:
    is_local = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, path: str, offset: int, take: Sink) -> None:
        try:
            content = (self._directory / path).open("rb")
        except FileNotFoundError as error:
            raise NotFoundError(f"{self._directory / path} is gone from the store") from error
        with content:
            content.seek(offset)
            while piece := content.read(_PIECE):
                take(piece)


class _PresignedUrls:
    """Presigned URLs, asked for when their turn comes: one that waits for long runs out."""

    def __init__(self, checkpoint: CheckpointRecord, registry: Checkpoints) -> None:
        self.uuid = checkpoint.uuid
        self._registry = registry
        self._paths = [file.path for file in checkpoint.files if not file.path.endswith("/")]
        self._places = {path: place for place, path in enumerate(self._paths)}
        self._urls: dict[str, str] = {}
        self._lock = threading.Lock()

    def first(self) -> str:
        """Gives one of the URLs; empty if there are none."""
        self._sign(self._paths[:_URLS_AT_ONCE])
        return next(iter(self._urls.values()), "")

    def of(self, path: str) -> str:
        """Gives the URL of a file, and asks for those of the files after it on the way.

        Raises:
            NotFoundError: The service gives none.
        """
        with self._lock:
            if path not in self._urls:
                start = self._places[path]
                self._sign(self._paths[start : start + _URLS_AT_ONCE])
            return self._given(path)

    def renewed(self, path: str) -> str:
        """Gives a new URL of a file.

        Raises:
            NotFoundError: The service gives none.
        """
        with self._lock:
            self._sign([path])
            return self._given(path)

    def _sign(self, paths: Sequence[str]) -> None:
        if paths:
            self._urls.update((item.path, item.url) for item in self._registry.presigned(self.uuid, paths))

    def _given(self, path: str) -> str:
        if path not in self._urls:
            raise NotFoundError(f"the store gave no URL for {path} of checkpoint {self.uuid}")
        return self._urls[path]


class _UrlSource:
    is_local = False

    def __init__(self, links: _PresignedUrls, transport: Transport, sleep: Callable[[float], None]) -> None:
        self._links = links
        self._transport = transport
        self._sleep = sleep

    def read(self, path: str, offset: int, take: Sink) -> None:
        at = offset

        def counted(piece: memoryview) -> None:
            nonlocal at
            take(piece)
            at += len(piece)

        def attempt() -> None:
            retry_with_new_url(
                lambda url: self._transport.get(url, counted, start=at),
                self._links.of(path),
                lambda: self._links.renewed(path),
            )

        try:
            while True:
                before = at
                try:
                    return retry_transfer(attempt, outage_timeout=OUTAGE_TIMEOUT, sleep=self._sleep)
                except UnavailableError:
                    # As long as bytes come now and then it is slow, not away.
                    if at == before:
                        raise
        except ObjectMissingError as failure:
            raise NotFoundError(
                f"{path} of checkpoint {self._links.uuid} is gone from its bucket; take another checkpoint "
                f"({failure})"
            ) from failure
