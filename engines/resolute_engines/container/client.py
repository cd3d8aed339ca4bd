"""Calls of Docker's API over a socket, each with a deadline and a bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp.http_exceptions import LineTooLong

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import (
    ConflictError,
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResoluteError,
    UnavailableError,
)
from resolute_engines.container.images.names import unpulled, with_tag
from resolute_engines.kit.bounded_answers import read_at_most

_VERSION = (1, 40)
"""Docker 19.03 and Podman 4 serve it. A newer Docker that does not is asked in the oldest that it serves."""
PODMAN = "/v4.0.0/libpod"
"""What paths of Podman's own API begin with."""
_ABOUT = "/version"
"""Has the versions of the API that are served, and is there without one."""
_OUTDATED = "is too old"
"""What Docker says of a version that it serves no longer."""
_UNIX = "unix://"
_POLL = "250ms"
"""How often Podman looks whether a container has ended, for one that waits."""
_WAIT_SECONDS = 10.0
"""For how long one call waits for the end of a container."""
_LIVELY = frozenset({"running", "paused", "restarting", "stopping"})
_ERRORS: Mapping[int, type[ResoluteError]] = {
    400: InvalidArgumentError,
    404: NotFoundError,
    409: ConflictError,
}
_BUSY = frozenset({429, 502, 503, 504})
"""The engine, or what is before it, cannot answer now; the same call may succeed later."""
_LAST_SUCCESS = 304
"""304 says that it is so already."""
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, asyncio.TimeoutError, OSError)


class DockerApi:
    """The API of one Docker or Podman daemon.

    Args:
        url: ``unix:///path`` or ``http://host:port``. Use the latter only if no other user can reach the
            port.
        deadline_seconds: Time limit of one call.
        silence_seconds: Longest time without output of a pull.
        answer_bytes: Largest size of one answer.
    """

    def __init__(
        self,
        url: str,
        *,
        deadline_seconds: float = 60.0,
        silence_seconds: float = 600.0,
        answer_bytes: int = 16 << 20,
    ) -> None:
        self.url = url
        """Where it is."""
        self._deadline_seconds = deadline_seconds
        self._silence_seconds = silence_seconds
        self._answer_bytes = answer_bytes
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._about: Mapping[str, Any] | None = None

    async def get(self, path: str, **query: Any) -> Any:
        """Reads something.

        Raises:
            NotFoundError: It is not there.
            UnavailableError: The engine does not answer.
            ResoluteError: It refuses; the message has its reason.
        """
        return await self._json("GET", path, query=query)

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Creates or changes something; what is so already is left.

        Raises:
            ConflictError: There is one of its name.
            UnavailableError: The engine does not answer; it may have been done.
            ResoluteError: It refuses; the message has its reason.
        """
        return await self._json("POST", path, query=query, json=body)

    async def delete(self, path: str, **query: Any) -> None:
        """Removes something; what is not there is no error.

        Raises:
            UnavailableError: The engine does not answer; it may have been removed.
            ResoluteError: It refuses; the message has its reason.
        """
        try:
            await self._json("DELETE", path, query=query)
        except NotFoundError:
            return

    async def put_archive(self, container: str, folder: str, archive: bytes) -> None:
        """Unpacks a tar into a container, running or not.

        Raises:
            NotFoundError: The container is not there, or the folder is not.
            UnavailableError: The engine does not answer.
            ResoluteError: It refuses; the message has its reason.
        """
        await self._bytes("PUT", f"/containers/{container}/archive", query={"path": folder}, data=archive)

    async def get_archive(self, container: str, path: str) -> bytes:
        """Reads a file or a folder of a container, running or not, as a tar.

        Raises:
            NotFoundError: There is none.
            UnavailableError: The engine does not answer.
            ResoluteError: It is too large, or the engine refuses.
        """
        return await self._bytes("GET", f"/containers/{container}/archive", query={"path": path})

    @asynccontextmanager
    async def open_archive(self, container: str, path: str) -> AsyncIterator[aiohttp.StreamReader]:
        """Reads a file or a folder of a container, running or not, as a tar of any size, piece by piece.

        Raises:
            NotFoundError: There is none.
            UnavailableError: The engine does not answer.
            ResoluteError: It refuses; the message has its reason.
        """
        url = await self._versioned(f"/containers/{container}/archive")
        timeout = aiohttp.ClientTimeout(total=None, sock_read=self._deadline_seconds)
        try:
            async with self._opened().get(url, params={"path": path}, timeout=timeout) as response:
                if response.status > _LAST_SUCCESS:
                    reason = _reason(await self._bounded(response))
                    raise self._refusal(response.status, f"GET {path} of {container}: {reason}")
                yield response.content
        except _LOST as failure:
            raise self._away(failure) from failure

    async def logs(self, container: str, *, lines: int) -> str:
        """Reads the last lines that a container wrote."""
        query = {"stdout": True, "stderr": True, "tail": lines}
        raw = await self._bytes("GET", f"/containers/{container}/logs", query=query)
        return _without_frames(raw).decode(errors="replace")

    async def until_stopped(self, container: str) -> None:
        """Waits, without a bound, until a container does not run; one that is not there does not.

        Raises:
            UnavailableError: The engine does not answer any more.
        """
        path, query = f"/containers/{container}/wait", {"condition": "not-running"}
        if await self.is_podman():
            # Docker's call keeps a processor busy there, up to version 4.5 (issue 18150 of Podman).
            path, query = f"{PODMAN}{path}", {"interval": _POLL}
        try:
            while await self._runs(container):
                wait = self._bytes("POST", path, query=query, timeout=None)
                # Podman 4.3 may miss an end in the moment in which a wait for it begins.
                with suppress(DeadlineError):
                    await in_time(wait, _WAIT_SECONDS, "the container")
        except NotFoundError:
            return

    async def is_podman(self) -> bool:
        """Whether it is Podman, which has an API of its own besides.

        Raises:
            UnavailableError: The engine does not answer.
        """
        parts = (await self._described()).get("Components") or ()
        return any("Podman" in part.get("Name", "") for part in parts)

    async def _versioned(self, path: str) -> str:
        if path == _ABOUT or path.startswith(PODMAN):
            return path
        least = (await self._described()).get("MinAPIVersion") or "0"
        major, minor = max(_VERSION, tuple(map(int, least.split("."))))
        return f"/v{major}.{minor}{path}"

    async def _described(self) -> Mapping[str, Any]:
        if self._about is None:
            self._about = await self.get(_ABOUT)
        return self._about

    async def _runs(self, container: str) -> bool:
        state = (await self.get(f"/containers/{container}/json"))["State"]
        return bool(state["Running"] or state.get("Status") in _LIVELY)

    async def has_image(self, image: str) -> bool:
        """Whether an image is there.

        Raises:
            UnavailableError: The engine does not answer.
        """
        try:
            await self.get(f"/images/{image}/json")
        except NotFoundError:
            return False
        return True

    async def pull(self, image: str, *, credentials: str = "") -> AsyncIterator[str]:
        """Pulls an image; tells how far it is.

        Args:
            image: Its name; the latest one without a tag.
            credentials: For its registry, as the API wants them.

        Raises:
            UnpulledImageError: It cannot be pulled now; the message has the engine's reason.
            FailedPreconditionError: It never can be; the message has the engine's reason.
            DeadlineError: It did not answer for too long.
            UnavailableError: The engine does not answer.
        """
        silence = self._silence_seconds
        headers = {"X-Registry-Auth": credentials} if credentials else {}
        try:
            async with self._opened().post(
                await self._versioned("/images/create"),
                params={"fromImage": with_tag(image)},
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=silence),
            ) as response:
                if response.status > _LAST_SUCCESS:
                    reason = _reason(await response.content.read(self._answer_bytes))
                    raise unpulled(image, reason, status=response.status)
                async for line in response.content:
                    answer = json.loads(line) if line.strip() else {}
                    if problem := (answer.get("errorDetail") or {}).get("message") or answer.get("error"):
                        raise unpulled(image, str(problem))
                    if words := answer.get("status") or answer.get("stream"):
                        yield " ".join(filter(None, (str(words).strip(), answer.get("progress"))))
        except asyncio.TimeoutError:
            raise DeadlineError(
                f"the pull of image {image} made no progress for {silence:g} s: does its registry answer?"
            ) from None
        except _LOST as failure:
            raise self._away(failure) from failure
        except (ValueError, LineTooLong) as failure:
            raise unpulled(image, f"the answer of {self.url} cannot be read: {failure}") from failure

    async def close(self) -> None:
        """Closes its connections; later requests fail as unavailable."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _json(self, method: str, path: str, *, query: Mapping[str, Any], json: Any = None) -> Any:
        raw = await self._bytes(method, path, query=query, body=json)
        return _parsed(raw)

    async def _bytes(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any],
        body: Any = None,
        data: bytes | None = None,
        timeout: float | None = -1.0,
    ) -> bytes:
        at = await self._versioned(path)
        total = self._deadline_seconds if timeout == -1.0 else timeout
        headers = {"Content-Type": "application/x-tar"} if data is not None else None
        try:
            async with self._opened().request(
                method,
                at,
                params={name: _text(value) for name, value in query.items()},
                json=body,
                data=data,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=total),
            ) as response:
                raw = await self._bounded(response)
        except _LOST as failure:
            raise self._away(failure) from failure
        if response.status <= _LAST_SUCCESS:
            return raw
        raise self._refusal(response.status, f"{method} {path}: {_reason(raw)}")

    def _refusal(self, status: int, reason: str) -> ResoluteError:
        if _OUTDATED in reason:
            # It was upgraded meanwhile: the next call asks for its versions again.
            self._about = None
            return UnavailableError(reason)
        if "already in use" in reason:
            # Podman's answer where two are made at once.
            return ConflictError(reason)
        if status in _BUSY:
            return UnavailableError(reason)
        return _ERRORS.get(status, FailedPreconditionError)(reason)

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        body = await read_at_most(response, self._answer_bytes)
        if body is None:
            raise FailedPreconditionError(
                f"an answer of {self.url} is larger than {self._answer_bytes} bytes"
            )
        return body

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise UnavailableError(f"the service is being stopped, and makes no more calls of {self.url}")
        if self._session is None:
            if self.url.startswith(_UNIX):
                # Each container that is waited for holds a connection.
                connector: aiohttp.BaseConnector = aiohttp.UnixConnector(
                    self.url.removeprefix(_UNIX), limit=0
                )
                base = "http://engine"
            else:
                connector, base = aiohttp.TCPConnector(limit=0), self.url
            self._session = aiohttp.ClientSession(base_url=base, connector=connector)
        return self._session

    def _away(self, failure: BaseException) -> UnavailableError:
        words = str(failure) or type(failure).__name__
        return UnavailableError(
            f"{self.url} does not answer ({words}): start its service, such as podman.socket"
        )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _parsed(raw: bytes) -> Any:
    if not raw.strip():
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def _reason(raw: bytes) -> str:
    answer = _parsed(raw)
    return (
        str(answer.get("message") or answer.get("cause") or answer)
        if isinstance(answer, dict)
        else str(answer or "refused")
    )


def _without_frames(raw: bytes) -> bytes:
    """The text of a stream in frames: 8 bytes of head, the last 4 of which say how long the piece is."""
    output, place = bytearray(), 0
    while place + 8 <= len(raw) and raw[place] in (0, 1, 2) and raw[place + 1 : place + 4] == b"\0\0\0":
        size = int.from_bytes(raw[place + 4 : place + 8], "big")
        output += raw[place + 8 : place + 8 + size]
        place += 8 + size
    return bytes(output + raw[place:])
