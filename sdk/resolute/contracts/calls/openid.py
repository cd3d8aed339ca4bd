"""Requests to an OpenID provider: its endpoints, and its answers. They block the calling thread."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from resolute.errors import UnavailableError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_SECONDS = 10.0
_MOST_BYTES = 1_000_000
_CHUNK_BYTES = 65_536


def is_safe_url(url: str) -> bool:
    """Whether what a URL answers cannot be changed on the way: it has TLS, or is on this machine."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) if parts.scheme == "https" else parts.scheme == "http" and _is_local(url)
    except ValueError:
        return False


def describe(issuer: str) -> Mapping[str, Any]:
    """Returns what a provider says of itself, such as the URLs of its endpoints.

    Args:
        issuer: URL of the provider.

    Raises:
        UnavailableError: It does not answer, or describes another provider.
    """
    if not is_safe_url(issuer):
        raise UnavailableError(f"the OpenID provider {issuer!r} has no TLS; ask an operator")
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = ask(url)
    if document.get("issuer") != issuer:
        raise UnavailableError(f"{url} does not describe the provider {issuer}; ask an operator")
    return document


def endpoint(described: Mapping[str, Any], name: str) -> str:
    """Returns the URL of an endpoint.

    Args:
        described: What the provider says of itself.
        name: Such as ``token_endpoint``.

    Raises:
        UnavailableError: The provider has none of this name, or others could change what it answers.
    """
    issuer, url = str(described["issuer"]), str(described.get(name) or "")
    if not url:
        raise UnavailableError(f"the OpenID provider {issuer} has no {name}; ask an operator")
    if not is_safe_url(url):
        raise UnavailableError(f"the {name} of the OpenID provider, {url!r}, has no TLS; ask an operator")
    # A provider elsewhere must not make this machine ask its own services.
    if _is_local(url) and not _is_local(issuer):
        raise UnavailableError(
            f"the {name} of the OpenID provider, {url!r}, is not where {issuer} is; ask an operator"
        )
    return url


def ask(url: str, fields: Mapping[str, str] | None = None, *, seconds: float = _SECONDS) -> Mapping[str, Any]:
    """Returns what a URL of a provider answers, errors of the protocol included.

    Args:
        url: The URL.
        fields: A form to send; None to read only.
        seconds: How long it may take to answer, and how long its answer may take.

    Raises:
        UnavailableError: It does not answer as an OpenID provider.
    """
    import urllib3  # here: most clusters have no provider, and start without it

    body = None if fields is None else urlencode(fields)
    headers = {"accept": "application/json"}
    if fields is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    try:
        with urllib3.PoolManager(timeout=seconds) as pool:
            response = pool.request(
                "GET" if fields is None else "POST",
                url,
                body=body,
                headers=headers,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            try:
                answer = json.loads(_read(response, seconds))
            finally:
                response.close()
    except (urllib3.exceptions.HTTPError, ValueError, RecursionError) as error:
        raise UnavailableError(f"{url} does not answer as an OpenID provider: {error}") from error
    if not isinstance(answer, dict):
        raise UnavailableError(f"{url} does not answer as an OpenID provider")
    return answer


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(response: BaseHTTPResponse, seconds: float) -> bytes:
    ends_at = time.monotonic() + seconds
    body = b""
    while chunk := response.read1(_CHUNK_BYTES):
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ValueError(f"it sends more than {_MOST_BYTES} bytes")
        if time.monotonic() > ends_at:
            raise ValueError(f"its answer takes more than {seconds:g} seconds")
    return body


def reason(answer: Mapping[str, Any]) -> str:
    """Why a provider refuses, in its own words."""
    return str(answer.get("error_description") or answer.get("error") or "it gave no reason")[:500]
