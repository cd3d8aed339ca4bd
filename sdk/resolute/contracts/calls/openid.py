"""Requests to an OpenID provider: where its endpoints are, and what they answer. They block."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from resolute.errors import UnavailableError

_TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 1_000_000


def is_safe_url(url: str) -> bool:
    """Whether nobody on the way can change what a URL answers: it has TLS, or is on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    try:
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname or "").is_loopback
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
    found = ask(url)
    if found.get("issuer") != issuer:
        raise UnavailableError(f"{url} does not describe the provider {issuer}; ask an operator")
    return found


def endpoint(described: Mapping[str, Any], name: str) -> str:
    """Returns the URL of an endpoint; empty if the provider has none of this name.

    Args:
        described: What the provider says of itself.
        name: Such as ``token_endpoint``.

    Raises:
        UnavailableError: Others could change what it answers.
    """
    url = str(described.get(name) or "")
    if url and not is_safe_url(url):
        raise UnavailableError(f"the {name} of the OpenID provider, {url!r}, has no TLS; ask an operator")
    return url


def ask(url: str, fields: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """Returns what a URL of a provider answers, errors of the protocol included.

    Args:
        url: The URL.
        fields: A form to send; None to read only.

    Raises:
        UnavailableError: It does not answer as an OpenID provider.
    """
    body = None if fields is None else urlencode(fields)
    headers = {"accept": "application/json"}
    if fields is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT_SECONDS) as pool:
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
                found = json.loads(response.read(_MOST_BYTES))
            finally:
                response.close()
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise UnavailableError(f"{url} does not answer as an OpenID provider: {error}") from error
    if not isinstance(found, dict):
        raise UnavailableError(f"{url} does not answer as an OpenID provider")
    return found


def reason(answer: Mapping[str, Any]) -> str:
    """Why a provider refuses, in its own words."""
    return str(answer.get("error_description") or answer.get("error") or "it gave no reason")[:500]
