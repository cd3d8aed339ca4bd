"""Bytes to and from a store by presigned URLs: kept connections, and what answers mean."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Protocol, final
from urllib.parse import urlsplit

from resolute.errors import FailedPreconditionError, QuotaError, UnavailableError

DEFAULT_TIMEOUT = 60.0
"""Seconds after which a store that neither sends nor takes a byte is away."""
_BLOCK_BYTES = 1 << 18
_ANSWER_BYTES = 4096
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_FULL = 507
_RANGE_NOT_SATISFIABLE = 416


class UrlRefusedError(FailedPreconditionError):
    """The store refuses a URL: it ran out, or was never good."""


class ObjectMissingError(FailedPreconditionError):
    """The store has nothing under a URL."""


class _RangeNotSatisfiableError(FailedPreconditionError):
    """An object ends before the range that was asked for."""


class Body(Protocol):
    """What is sent; ``read`` gives nothing at its end."""

    def read(self, size: int = ..., /) -> bytes:
        """Gives the next bytes."""


@final
class Transport:
    """Connections to stores, used by several threads, each by one at a time.

    Used as a context: the connections are closed at its end.

    Args:
        timeout: Seconds after which a store that neither sends nor takes a byte is away.
    """

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: defaultdict[tuple[str, str], list[http.client.HTTPConnection]] = defaultdict(list)
        self._tls: ssl.SSLContext | None = None

    def __enter__(self) -> Transport:
        """Opens nothing yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Closes the connections that are not in use."""
        with self._lock:
            connections = [connection for idle in self._idle.values() for connection in idle]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def put(
        self, url: str, body: bytes | Body, *, size: int, headers: Mapping[str, str] | None = None
    ) -> str:
        """Sends an object, or a part of one.

        Args:
            url: Where to.
            body: What.
            size: Its bytes; no more are sent.
            headers: What the store wants to be told with it.

        Returns:
            The tag that the store gave it.

        Raises:
            UrlRefusedError: The URL is not good any more.
            ObjectMissingError: There is no such bucket or upload.
            QuotaError: The store is full.
            UnavailableError: The store cannot be reached, or is busy.
        """
        headers = {**(headers or {}), "Content-Length": str(size)}
        with self._exchange("PUT", url, body=body, headers=headers) as response:
            with _typed(url):
                response.read()
            return response.getheader("ETag") or ""

    def get(self, url: str, take: Callable[[memoryview], None], *, start: int = 0) -> int:
        """Receives an object, or the rest of one.

        Args:
            url: Where from.
            take: Gets the bytes piece by piece, in order.
            start: The first byte that is wanted.

        Returns:
            How many bytes were taken; none where the object ends before ``start``.

        Raises:
            UrlRefusedError: The URL is not good any more.
            ObjectMissingError: There is no such object.
            UnavailableError: The store cannot be reached, is busy, or broke off.
        """
        headers = {"Range": f"bytes={start}-"} if start else {}
        try:
            with self._exchange("GET", url, headers=headers) as response:
                announced = response.length
                # A store without ranges sends the whole object.
                passed = 0 if response.status == 206 or response.getheader("Content-Range") else start
                view = memoryview(bytearray(_BLOCK_BYTES))
                received = 0
                while count := self._read(response, view, url):
                    wanted = view[max(0, min(count, passed - received)) : count]
                    received += count
                    if wanted:
                        take(wanted)
                if announced is not None and received != announced:
                    raise UnavailableError(
                        f"the store broke off after {received} of {announced} bytes; try again"
                    )
                return max(0, received - passed)
        except _RangeNotSatisfiableError:
            return 0

    def get_range(self, url: str, *, start: int, size: int) -> bytearray:
        """Receives a part of an object.

        Args:
            url: Where from.
            start: The first byte.
            size: Most bytes that are wanted.

        Returns:
            The bytes; fewer where the object ends before.

        Raises:
            UrlRefusedError: The URL is not good any more.
            ObjectMissingError: There is no such object.
            UnavailableError: The store cannot be reached, is busy, or broke off.
        """
        headers = {"Range": f"bytes={start}-{start + size - 1}"}
        try:
            with self._exchange("GET", url, headers=headers) as response:
                # Some stores send the range that was asked for, and still say 200.
                announced = size if response.length is None else response.length
                if announced > size:
                    raise UnavailableError(f"the store sends {announced} bytes where {size} were asked for")
                data = bytearray(announced)
                view, received = memoryview(data), 0
                while received < announced and (count := self._read(response, view[received:], url)):
                    received += count
                if received != announced:
                    raise UnavailableError(
                        f"the store broke off after {received} of {announced} bytes; try again"
                    )
                return data
        except _RangeNotSatisfiableError:
            return bytearray()

    @contextlib.contextmanager
    def _exchange(
        self,
        method: str,
        url: str,
        *,
        body: bytes | Body | None = None,
        headers: dict[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Makes a request; the connection is kept only if the answer was read to its end."""
        parts = urlsplit(url)
        place = (parts.scheme, parts.netloc)
        connection = self._connection(place)
        keep = False
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            with _typed(url):
                connection.request(method, target, body=_as_body(body), headers=headers or {})
                response = connection.getresponse()
                refused = response.status not in {200, 201, 204, 206}
                answer = response.read(_ANSWER_BYTES).decode(errors="replace") if refused else ""
            if refused:
                raise _refusal(response.status, answer, host=parts.netloc)
            yield response
            keep = response.isclosed() and not response.will_close
        finally:
            self._give_back(place, connection, keep=keep)

    def _read(self, response: http.client.HTTPResponse, view: memoryview, url: str) -> int:
        # Only what the store does is taken for its failure: where the bytes go may fail too.
        with _typed(url):
            return response.readinto(view)

    def _connection(self, place: tuple[str, str]) -> http.client.HTTPConnection:
        scheme, address = place
        with self._lock:
            if self._idle[place]:
                return self._idle[place].pop()
            if scheme == "https" and self._tls is None:
                self._tls = ssl.create_default_context()
        if scheme == "https":
            return http.client.HTTPSConnection(
                address, timeout=self._timeout, blocksize=_BLOCK_BYTES, context=self._tls
            )
        return http.client.HTTPConnection(address, timeout=self._timeout, blocksize=_BLOCK_BYTES)

    def _give_back(
        self, place: tuple[str, str], connection: http.client.HTTPConnection, *, keep: bool
    ) -> None:
        if not keep:
            connection.close()
            return
        with self._lock:
            self._idle[place].append(connection)


@contextlib.contextmanager
def _typed(url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as failure:
        host = urlsplit(url).netloc
        raise UnavailableError(
            f"the store at {host} does not answer ({failure or type(failure).__name__}); try again"
        ) from failure


def _as_body(body: bytes | Body | None) -> bytes | BinaryIO | None:
    return body  # type: ignore[return-value]  # http.client reads whatever has read()


def _refusal(status: int, answer: str, *, host: str) -> Exception:
    said = f"{status} {answer[:300]}".strip()
    if status == 404:
        return ObjectMissingError(f"the store at {host} has nothing there ({said}); check the bucket")
    if status == _RANGE_NOT_SATISFIABLE:
        return _RangeNotSatisfiableError(f"the store at {host} has no such range ({said})")
    if status == _FULL or "StorageFull" in answer or "QuotaExceeded" in answer:
        return QuotaError(f"the store at {host} is full ({said}); free some space and repeat")
    if status in _BUSY:
        return UnavailableError(f"the store at {host} is busy ({said}); try again")
    return UrlRefusedError(
        f"the store at {host} refuses a presigned URL ({said}); `resolute storage doctor` tells why, such as "
        "clocks that differ"
    )
