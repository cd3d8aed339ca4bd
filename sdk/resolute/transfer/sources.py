"""Sources of file contents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, final

from resolute.errors import NotFoundError
from resolute.transfer.retries import new_backoff, retry_transfer, retry_with_new_url
from resolute.transfer.transport import ObjectMissingError, Sink, Transport

_URLS_AT_ONCE = 250
"""Of the longest names there are, so many URLs fit a message."""


class FileSource(Protocol):
    """Reads the contents of files, for several threads at once."""

    @property
    def parallel(self) -> bool:
        """Whether several ranges of one file arrive faster than one stream."""

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine, where keeping copies gains nothing."""

    def read(self, path: str, take: Sink, *, start: int = 0, size: int | None = None) -> None:
        """Hands over the bytes of one file.

        Args:
            path: The file.
            take: Gets the bytes.
            start: The first byte.
            size: How many bytes at most; None for all that follow.

        Raises:
            NotFoundError: There is no such file.
            UnavailableError: The store was away for too long.
        """


@final
class ResumingSource:
    """A source that resumes an interrupted read, and waits during outages of the store.

    Args:
        fetch: One attempt to read, with the signature of ``FileSource.read``.
        outage_timeout: Seconds without a byte after which the read fails.
        sleep: Waits some seconds.
    """

    parallel = True
    is_local = False

    def __init__(
        self,
        fetch: Callable[[str, Sink, int, int | None], object],
        *,
        outage_timeout: float,
        sleep: Callable[[float], None],
    ) -> None:
        self._fetch = fetch
        self._outage_timeout = outage_timeout
        self._sleep = sleep

    def read(self, path: str, take: Sink, *, start: int = 0, size: int | None = None) -> None:
        """Hands over the bytes of one file, as ``FileSource`` says."""
        at, end = start, None if size is None else start + size
        backoff = new_backoff()

        def counted(piece: bytes | memoryview) -> None:
            nonlocal at
            take(piece)
            at += len(piece)
            # As long as bytes arrive now and then the store is slow, not away.
            backoff.succeeded()

        def attempt() -> None:
            if end is None or at < end:
                self._fetch(path, counted, at, None if end is None else end - at)

        retry_transfer(
            attempt,
            outage_timeout=self._outage_timeout,
            backoff=backoff,
            sleep=self._sleep,
        )


@final
class PresignedUrls:
    """Presigned URLs for reading. They are requested shortly before their use, because they expire.

    Args:
        name: Name of the object that has the files, for messages.
        paths: The files, in the order in which they are read.
        sign: Returns URLs by path.
    """

    def __init__(
        self, name: str, paths: Sequence[str], sign: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> None:
        self.name = name
        self._paths = paths
        self._sign = sign
        self._places = {path: place for place, path in enumerate(paths)}
        self._urls: dict[str, str] = {}
        self._lock = threading.Lock()

    def first(self) -> str:
        """Returns one of the URLs; empty if there are none."""
        with self._lock:
            self._ask_from(0)
            return next(iter(self._urls.values()), "")

    def of(self, path: str) -> str:
        """Returns the URL of a file; those of the next files are asked for with it.

        Raises:
            NotFoundError: The service gives none.
        """
        with self._lock:
            if path not in self._urls:
                self._ask_from(self._places[path])
            return self._given(path)

    def renewed(self, path: str) -> str:
        """Returns a new URL of a file.

        Raises:
            NotFoundError: The service gives none.
        """
        with self._lock:
            self._urls.update(self._sign([path]))
            return self._given(path)

    def _ask_from(self, place: int) -> None:
        paths = self._paths[place : place + _URLS_AT_ONCE]
        if paths:
            self._urls.update(self._sign(paths))

    def _given(self, path: str) -> str:
        if path not in self._urls:
            raise NotFoundError(f"the store gave no URL for {path} of {self.name}")
        return self._urls[path]


def url_source(
    urls: PresignedUrls,
    transport: Transport,
    *,
    outage_timeout: float,
    sleep: Callable[[float], None],
) -> ResumingSource:
    """Reads files by presigned URLs.

    Args:
        urls: The URLs.
        transport: Connections.
        outage_timeout: Seconds without a byte after which the read fails.
        sleep: Waits some seconds.
    """

    def fetch(path: str, take: Sink, start: int, size: int | None) -> None:
        try:
            retry_with_new_url(
                lambda url: transport.get(url, take, start=start, size=size),
                urls.of(path),
                lambda: urls.renewed(path),
            )
        except ObjectMissingError as failure:
            raise NotFoundError(
                f"{path} of {urls.name} is gone from its bucket; take another checkpoint ({failure})"
            ) from failure

    return ResumingSource(fetch, outage_timeout=outage_timeout, sleep=sleep)
