"""Looks up the address of gRPC at the URL of a gateway."""

from __future__ import annotations

import json
from typing import Any

from resolute.contracts.calls.tls import ClientTls

DISCOVERY_PATH = "/.well-known/resolute.json"
"""Where gateways answer."""
_SECONDS = 5.0


def grpc_address(url: str, *, tls: ClientTls | None = None) -> str:
    """Asks what is at a URL for the address of gRPC.

    Args:
        url: With its scheme, as people give it.
        tls: Whom to trust; None for a URL of plain HTTP.

    Returns:
        ``host:port``; empty if no gateway answers there: URLs of the gRPC port itself are in use too.
    """
    # Few commands reach a cluster by a URL: the others need not wait for it.
    import urllib3

    trusted: dict[str, Any] = {}
    if tls is not None:
        trusted["ssl_context"] = tls.context()
        if tls.server_name:
            trusted["server_hostname"] = trusted["assert_hostname"] = tls.server_name
    try:
        with urllib3.PoolManager(timeout=_SECONDS, retries=False, **trusted) as pool:
            response = pool.request("GET", url.rstrip("/") + DISCOVERY_PATH)
        return str(json.loads(response.data)["grpc_address"]) if response.status == 200 else ""
    except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError):
        return ""
