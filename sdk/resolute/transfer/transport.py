"""HTTP transfers to and from a store by presigned URLs: pooled connections, and errors by status."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, cast, final
from urllib.parse import urlsplit

import urllib3

from resolute.errors import FailedPreconditionError, QuotaError, UnavailableError

DEFAULT_TIMEOUT = 60.0
"""Seconds after which a store that neither sends nor takes a byte is away."""
Sink = Callable[["bytes | memoryview"], object]
"""Takes bytes piece by piece, in order."""
BLOCK_BYTES = 1 << 18
"""Bytes that are moved at a time.

Larger writes make Linux (6.18, ext4) use large folios: 1 GB took 3.2 s of CPU instead of 0.5 s.
"""
_CONNECTIONS = 32
_ANSWER_BYTES = 4096
_DONE = frozenset({200, 201, 204, 206})
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_FULL = 507
_RANGE_NOT_SATISFIABLE = 416


class UrlRefusedError(FailedPreconditionError):
    """The store refuses a URL: it expired, or was never valid."""


class ObjectMissingError(FailedPreconditionError):
    """The store has no object at a URL."""


class _RangeNotSatisfiableError(FailedPreconditionError):
    """An object ends before the requested range."""


class Body(Protocol):
    """The body of a request; ``read`` returns no bytes at its end."""

    def read(self, size: int = ..., /) -> bytes:
        """Returns the next bytes."""


@final
class Transport:
    """Connections to stores, used by several threads at once.

    Use it as a context manager; it closes the connections at its end.

    Args:
        timeout: Seconds without a byte in either direction after which a store counts as unavailable.
    """

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            timeout=urllib3.Timeout(connect=timeout, read=timeout),
            # Anyone who calls repeats, with a new URL if need be.
            retries=False,
            blocksize=BLOCK_BYTES,
        )

    def __enter__(self) -> Transport:
        """Opens nothing yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Closes the connections that are not in use."""
        self._pool.clear()

    def put(
        self, url: str, body: bytes | Body, *, size: int, headers: Mapping[str, str] | None = None
    ) -> str:
        """Sends an object, or a part of one.

        Args:
            url: Where to.
            body: What.
            size: Its bytes; no more are sent.
            headers: What the store expects with it.

        Returns:
            The tag that the store gave it.

        Raises:
            UrlRefusedError: The URL is no longer valid.
            ObjectMissingError: There is no such bucket or upload.
            QuotaError: The store is full.
            UnavailableError: The store cannot be reached, or is busy.
        """
        headers = {**(headers or {}), "Content-Length": str(size)}
        with self._exchange("PUT", url, body=body, headers=headers) as response:
            with _typed(url):
                response.read()
            return response.headers.get("ETag", "")

    def get(self, url: str, take: Sink, *, start: int = 0, size: int | None = None) -> int:
        """Receives an object, or a part of one.

        Args:
            url: Where from.
            take: Gets the bytes.
            start: The first byte that is wanted.
            size: How many bytes are wanted at most; None for all that follow.

        Returns:
            How many bytes were taken; fewer than ``size`` where the object ends before.

        Raises:
            UrlRefusedError: The URL is no longer valid.
            ObjectMissingError: There is no such object.
            UnavailableError: The store cannot be reached, is busy, or broke off.
        """
        end = "" if size is None else str(start + size - 1)
        headers = {"Range": f"bytes={start}-{end}"} if start or end else {}
        taken = 0
        try:
            with self._exchange("GET", url, headers=headers) as response:
                for piece in _pieces(response, url, skipped=_bytes_before(response, start)):
                    wanted = piece if size is None else piece[: size - taken]
                    take(wanted)
                    taken += len(wanted)
                    if taken == size:
                        break
        except _RangeNotSatisfiableError:
            return 0
        return taken

    @contextlib.contextmanager
    def _exchange(
        self,
        method: str,
        url: str,
        *,
        body: bytes | Body | None = None,
        headers: Mapping[str, str],
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Makes a request; the connection is kept only if the answer was read to its end."""
        with _typed(url):
            response = self._pool.request(
                method,
                url,
                body=cast("bytes | io.BytesIO | None", body),
                headers=headers,
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
        try:
            if response.status not in _DONE:
                with _typed(url):
                    answer = response.read(_ANSWER_BYTES).decode(errors="replace")
                raise _refusal(response.status, answer, host=urlsplit(url).netloc)
            yield response
        finally:
            if response.length_remaining != 0:
                response.close()
            response.release_conn()


def _bytes_before(response: urllib3.BaseHTTPResponse, start: int) -> int:
    """How many bytes come before the first one that was asked for: a store without ranges sends all."""
    # Some stores send the range that was asked for, and still say 200.
    return 0 if response.status == 206 or "Content-Range" in response.headers else start


def _pieces(response: urllib3.BaseHTTPResponse, url: str, *, skipped: int) -> Iterator[memoryview]:
    while True:
        # Only failures of the store are its failures: where the bytes go may fail too.
        with _typed(url):
            data = response.read(BLOCK_BYTES)
        if not data:
            return
        piece = memoryview(data)[skipped:]
        skipped = max(0, skipped - len(data))
        if piece:
            yield piece


@contextlib.contextmanager
def _typed(url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, urllib3.exceptions.HTTPError) as failure:
        host = urlsplit(url).netloc
        raise UnavailableError(
            f"the store at {host} does not answer ({failure or type(failure).__name__}); try again"
        ) from failure


def _refusal(status: int, answer: str, *, host: str) -> Exception:
    reason = f"{status} {answer[:300]}".strip()
    if status == 404:
        return ObjectMissingError(f"the store at {host} has nothing there ({reason}); check the bucket")
    if status == _RANGE_NOT_SATISFIABLE:
        return _RangeNotSatisfiableError(f"the store at {host} has no such range ({reason})")
    if status == _FULL or "StorageFull" in answer or "QuotaExceeded" in answer:
        return QuotaError(f"the store at {host} is full ({reason}); free some space and repeat")
    if status in _BUSY:
        return UnavailableError(f"the store at {host} is busy ({reason}); try again")
    return UrlRefusedError(
        f"the store at {host} refuses a presigned URL ({reason}): clocks that differ, credentials that were "
        "withdrawn, or a proxy that changes the request; a check of the storage tells which"
    )
