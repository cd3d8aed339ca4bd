"""A client of a Determined master's REST API: sign-in, pages, and retries during outages."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, final
from urllib.parse import urlencode, urlsplit

import urllib3

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnauthenticatedError,
    UnavailableError,
)

Message = Mapping[str, Any]
"""A JSON object of the master, whose keys are those of its releases."""
_T = TypeVar("_T")
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_ERRORS: Mapping[int, type[Exception]] = {
    401: UnauthenticatedError,
    404: NotFoundError,
    501: NotFoundError,
}
"""A release that lacks a path answers 404 or 501."""
_PORT = 8080
"""Of an address that names neither a port nor a scheme."""
_TIMEOUT = 120.0
_CONNECTIONS = 16
_PAGE = 200
_ANSWER_BYTES = 4096
_STREAM_BYTES = 1 << 18
_ATTEMPTS, _FIRST_ATTEMPTS = 8, 3
_SIGN_IN = "/api/v1/auth/login"


class MasterUnavailableError(UnavailableError):
    """The other cluster does not answer."""


@final
class Master:
    """A Determined master. Threads may share it once it is signed in.

    Args:
        address: ``http://HOST:PORT`` or ``https://…``. As with the command ``det``, the default scheme is
            HTTP; without scheme and port, the port is 8080.
        ca_file: File of the trusted certificates; empty for those of the machine.
        sleep: Waits some seconds before a call is repeated.
        attempts: Largest number of attempts of a call.

    Raises:
        InvalidArgumentError: The address is not that of a master.
    """

    def __init__(
        self,
        address: str,
        *,
        ca_file: str = "",
        sleep: Callable[[float], object] = time.sleep,
        attempts: int = _ATTEMPTS,
    ) -> None:
        self.address = _url_of(address)
        self._sleep = sleep
        self._attempts = attempts
        self._headers: dict[str, str] = {}
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            timeout=urllib3.Timeout(connect=_TIMEOUT, read=_TIMEOUT),
            retries=False,
            ca_certs=ca_file or None,
        )

    def sign_in(self, user: str, password: str) -> None:
        """Signs in as a user. A master that is away is not waited for: the address may be wrong.

        Raises:
            MasterUnavailableError: It did not answer.
            UnauthenticatedError: The name or the password is wrong.
        """
        body = {"username": user, "password": password, "isHashed": False}
        answer = self._retried(lambda: self._answer("POST", _SIGN_IN, {}, body), attempts=_FIRST_ATTEMPTS)
        self.use_token(str(answer["token"]))

    def use_token(self, token: str) -> None:
        """Makes every call with a token."""
        self._headers = {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()

    def get(self, path: str, **fields: Any) -> Message:
        """Returns one answer.

        Raises:
            NotFoundError: The master has no such object, or its release no such path.
            MasterUnavailableError: It did not answer, however often it was asked.
        """
        return self._retried(lambda: self._answer("GET", path, fields, None))

    def post(self, path: str, body: Message) -> Message:
        """Returns the answer to a body. Raises what ``get`` raises."""
        return self._retried(lambda: self._answer("POST", path, {}, body))

    def pages(self, path: str, field: str, **fields: Any) -> Iterator[Message]:
        """Yields the items of every page. Raises what ``get`` raises."""
        return _items(lambda offset: self.get(path, limit=_PAGE, offset=offset, **fields), field)

    def search(self, path: str, field: str) -> Iterator[Message]:
        """Yields the items of every page of a list that a body asks for. Raises what ``get`` raises."""
        return _items(lambda offset: self.post(path, {"limit": _PAGE, "offset": offset}), field)

    def stream(self, path: str, **fields: Any) -> Iterator[Message]:
        """Yields the results of a stream; one that breaks off is opened again, and what has come is skipped.

        The master gives streams in an order that stays. Raises what ``get`` raises.
        """
        seen = 0
        backoff = self._backoff()
        while True:
            try:
                for place, result in enumerate(self._results(path, fields)):
                    if place >= seen:
                        yield result
                        seen += 1
                        backoff.succeeded()
                return
            except MasterUnavailableError:
                pause = backoff.failed()
                if backoff.failures >= self._attempts:
                    raise
                self._sleep(pause)

    def _retried(self, call: Callable[[], _T], *, attempts: int | None = None) -> _T:
        wanted = self._attempts if attempts is None else attempts
        return retry(call, backoff=self._backoff(), attempts=wanted, sleep=self._sleep)

    @staticmethod
    def _backoff() -> Backoff:
        return Backoff(first=0.5, longest=10.0)

    def _answer(self, method: str, path: str, fields: Message, body: Message | None) -> Message:
        response = self._exchange(method, path, fields, body)
        try:
            return _object(response.read(), self.address)
        except (OSError, urllib3.exceptions.HTTPError) as failure:
            raise self._silent(failure) from failure
        finally:
            response.release_conn()

    def _results(self, path: str, fields: Message) -> Iterator[Message]:
        response = self._exchange("GET", path, fields, None)
        try:
            for line in self._lines(response):
                message = _object(line, self.address)
                if "error" in message:
                    raise MasterUnavailableError(f"{self.address} broke off a stream: {message['error']}")
                yield message["result"]
        finally:
            response.close()
            response.release_conn()

    def _lines(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        rest = b""
        try:
            for piece in response.stream(_STREAM_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
        except (OSError, urllib3.exceptions.HTTPError) as failure:
            raise self._silent(failure) from failure
        if rest:
            yield rest

    def _exchange(
        self, method: str, path: str, fields: Message, body: Message | None
    ) -> urllib3.BaseHTTPResponse:
        pairs = [
            (name, str(value))
            for name, values in fields.items()
            for value in (values if isinstance(values, (list, tuple)) else [values])
        ]
        query = urlencode(pairs)
        try:
            response = self._pool.request(
                method,
                f"{self.address}{path}" + (f"?{query}" if query else ""),
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers,
                preload_content=False,
                redirect=False,
            )
            if response.status == 200:
                return response
            answer = response.read(_ANSWER_BYTES).decode(errors="replace")
            response.close()
        except (OSError, urllib3.exceptions.HTTPError) as failure:
            raise self._silent(failure) from failure
        message = f"{self.address} answers {response.status} to {method} {path}: {answer[:300]}"
        if response.status in _BUSY:
            raise MasterUnavailableError(message)
        raise _ERRORS.get(response.status, FailedPreconditionError)(message)

    def _silent(self, failure: Exception) -> MasterUnavailableError:
        reason = failure or type(failure).__name__
        return MasterUnavailableError(f"the master at {self.address} does not answer ({reason}); try again")


def _url_of(address: str) -> str:
    """The URL that paths are added to."""
    wanted = "write it as http://HOST:PORT, https://HOST:PORT or HOST:PORT, with an IPv6 address in brackets"
    with_scheme = "://" in address
    # A user's password must not be printed.
    shown = re.sub(r"[^/]*@", "…@", address, count=1)
    try:
        parts = urlsplit(address if with_scheme else f"http://{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidArgumentError(f"{shown!r} is not the address of a master ({error}); {wanted}") from error
    faults = {
        "it has no host": not host or parts.netloc.startswith(":"),
        "it has spaces or control characters": not address.isprintable() or " " in address,
        f"its scheme is {parts.scheme}": parts.scheme not in {"http", "https"},
        "it has a user, whom --as names": "@" in parts.netloc,
        "it ends with a query": bool(parts.query or parts.fragment),
        "it is that of a page": re.match(r"/(det|api|docs)(/|$)", parts.path) is not None,
    }
    fault = next((fault for fault, found in faults.items() if found), "")
    if fault:
        raise InvalidArgumentError(f"{shown!r} is not the address of a master: {fault}; {wanted}")
    if port is None and not with_scheme:
        parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORT}")
    return parts.geturl().rstrip("/")


def _items(ask: Callable[[int], Message], field: str) -> Iterator[Message]:
    """Asks for page after page by offsets, which only grow.

    A page may be shorter than was asked for: the master then tells how many items there are in all.
    """
    offset = 0
    while True:
        answer = ask(offset)
        items = answer.get(field) or []
        yield from items
        pagination = answer.get("pagination") or {}
        end = max(offset + len(items), int(pagination.get("endIndex") or 0))
        total = int(pagination.get("total") or 0)
        if end == offset or (end >= total if total else len(items) < _PAGE):
            return
        offset = end


def _object(text: bytes, address: str) -> Message:
    try:
        message = json.loads(text)
    except ValueError as error:
        raise MasterUnavailableError(f"{address} broke off an answer") from error
    if not isinstance(message, dict):
        raise FailedPreconditionError(f"{address} is no Determined master: it answers {text[:80]!r}")
    return message
