"""Calls of a Kubernetes API server, each with a deadline and a bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    DataLossError,
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResoluteError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_engines.kit.bounded_answers import read_at_most
from resolute_engines.kit.shared_attempt import SharedAttempt

_LAST_SUCCESS = 299
_UNAUTHENTICATED = 401
_GONE = 410
_PATCHES = 5
"""How often a change is asked for that meets those of others."""
_PATCH = {"Content-Type": "application/merge-patch+json"}
_ERRORS: Mapping[int, type[ResoluteError]] = {
    400: InvalidArgumentError,
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidArgumentError,
}
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
"""What an API server answers that cannot do it now, such as 500 while a new namespace is being made."""

READING = "credentials of Kubernetes are being read, see whether the program ends that the kubeconfig names,"
"""What is under way while such a program does not answer."""


class ExpiredError(UnavailableError):
    """The API server no longer has the resource version from which a watch continues. Start again."""


class KubernetesApi:
    """One API server.

    Args:
        client: The library's client of it.
        kubeconfig: File with the credentials; empty for the service account of this process's Pod.
        context: Context of that file; empty for the file's default.
        deadline_seconds: Time limit of one call.
        answer_bytes: Largest size of one answer.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        kubeconfig: str = "",
        context: str = "",
        deadline_seconds: float = 30.0,
        answer_bytes: int = 16 << 20,
    ) -> None:
        self._client = client
        self._reading = SharedAttempt(
            "kubernetes-credentials",
            lambda: _load(client.configuration, kubeconfig, context),
            seconds=deadline_seconds,
            late=READING,
        )
        self._deadline_seconds = deadline_seconds
        self._answer_bytes = answer_bytes

    @classmethod
    async def connect(
        cls, *, kubeconfig: str = "", context: str = "", deadline_seconds: float = 30.0
    ) -> KubernetesApi:
        """Reads credentials; nothing is called yet.

        Args:
            kubeconfig: A file as kubectl has it; empty for the service account of the Pod that this is.
            context: A context of that file; empty for its own choice.
            deadline_seconds: Time limit of one call.

        Raises:
            FailedPreconditionError: There are none, or they cannot be read.
        """
        configuration = Configuration()
        await _load(configuration, kubeconfig, context)
        return cls(
            ApiClient(configuration),
            kubeconfig=kubeconfig,
            context=context,
            deadline_seconds=deadline_seconds,
        )

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Reads an object or a list.

        Raises:
            NotFoundError: There is none.
            ExpiredError: The list that this goes on from was forgotten.
            UnavailableError: The API server does not answer, or cannot now.
            ResoluteError: It refuses; the message has its reason.
        """
        return await self._answer("GET", path, query=query)

    async def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an object; returns it as it was stored.

        Raises:
            AlreadyExistsError: There is one of its name.
            UnavailableError: The API server does not answer, or cannot now. It may have been created.
            ResoluteError: It refuses; the message has its reason.
        """
        return await self._answer("POST", path, body=manifest)

    async def patch(self, path: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Changes fields of an object (a JSON merge patch); returns it as it was stored.

        Raises:
            NotFoundError: There is none.
            UnavailableError: The API server does not answer, or cannot now. It may have been changed.
            ResoluteError: It refuses; the message has its reason.
        """
        for _ in range(_PATCHES - 1):
            # It names no version of the object, so that it may be repeated where others change that too.
            with suppress(ConflictError):
                return await self._answer("PATCH", path, body=changes, headers=_PATCH)
        return await self._answer("PATCH", path, body=changes, headers=_PATCH)

    async def delete(self, path: str, options: Mapping[str, Any], **query: str) -> None:
        """Deletes an object, or all of a path that the query selects. What is not there is no error.

        Raises:
            UnavailableError: The API server does not answer, or cannot now. It may have been deleted.
            ResoluteError: It refuses; the message has its reason.
        """
        try:
            await self._answer("DELETE", path, query=query, body=options)
        except NotFoundError:
            return

    async def stream(self, path: str, *, seconds: int, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Yields the events of a watch, until the API server or ``seconds`` end it.

        Raises:
            ExpiredError: The version that it begins at was forgotten.
            UnavailableError: The API server does not answer, or the connection broke.
            ResoluteError: It refuses; the message has its reason.
        """
        query = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
        limit = seconds + self._deadline_seconds
        async with self._response("GET", path, query=query, timeout=limit) as response:
            if response.status > _LAST_SUCCESS:
                raise _refusal("GET", path, response.status, await self._read(response))
            while line := await _line(response):
                event = _parse(line)
                if event.get("type") == "ERROR":
                    status = event.get("object", {})
                    raise _refusal("GET", path, int(status.get("code", 0)), line, status)
                yield event

    async def close(self) -> None:
        """Closes its connections."""
        await self._reading.close()
        await self._client.close()

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        for attempt in range(2):
            async with self._response(
                method, path, query=query, body=body, headers=headers, timeout=self._deadline_seconds
            ) as response:
                content = await self._read(response)
            if response.status == _UNAUTHENTICATED and not attempt:
                # Tokens of clouds last minutes; the file, or the program that it names, has a newer one.
                await self._reading.outcome()
                continue
            break
        if response.status > _LAST_SUCCESS:
            raise _refusal(method, path, response.status, content)
        return _parse(content)

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            response = await self._client.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", **(headers or {})},
                body=dict(body) if body is not None else None,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=self._deadline_seconds),
            )
            try:
                yield response
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    # Not all was read: it serves no other call, and a polite end of TLS would outlive it.
                    response.connection.transport.abort()
                response.close()
        except asyncio.TimeoutError:
            raise DeadlineError(f"{method} {path}: Kubernetes did not answer in {timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise UnavailableError(f"{method} {path}: Kubernetes cannot be reached: {error}") from None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        content = await read_at_most(response, self._answer_bytes)
        if content is None:
            raise DataLossError(
                f"{response.url.path}: Kubernetes answers with more than {self._answer_bytes} bytes"
            )
        return content


async def _load(configuration: Configuration, kubeconfig: str, context: str) -> None:
    try:
        if kubeconfig:
            await load_kube_config(
                config_file=kubeconfig,
                context=context or None,
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError, ValueError) as error:
        raise FailedPreconditionError(
            f"the credentials of Kubernetes cannot be read from "
            f"{kubeconfig or 'the service account of this Pod'}: {error}"
        ) from None


async def _line(response: aiohttp.ClientResponse) -> bytes:
    try:
        line: bytes = await response.content.readline()
    except (ValueError, LineTooLong):  # the latter since aiohttp 3.14
        raise DataLossError(
            f"{response.url.path}: an event of Kubernetes is longer than any object"
        ) from None
    return line


def _parse(content: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise DataLossError(f"the answer of Kubernetes is not an object: {content[:200]!r}")
    return parsed


def _refusal(
    method: str, path: str, status: int, content: bytes, details: Mapping[str, Any] | None = None
) -> ResoluteError:
    """The error for what an API server answered."""
    if details is None:
        try:
            details = _parse(content)
        except DataLossError:
            details = {}
    reason = details.get("message") or content[:500].decode("utf-8", "replace") or f"status {status}"
    message = f"{method} {path}: Kubernetes refuses: {reason}"
    if status == _GONE:
        return ExpiredError(message)
    if details.get("reason") == "AlreadyExists":
        return AlreadyExistsError(message)
    if status in _TEMPORARY:
        return UnavailableError(message)
    return _ERRORS.get(status, FailedPreconditionError)(message)
