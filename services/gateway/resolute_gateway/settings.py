"""Settings of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from resolute.errors import InvalidArgumentError

HOSTS_VARIABLE = "RESOLUTE_HTTP_HOSTS"
ORIGINS_VARIABLE = "RESOLUTE_HTTP_ORIGINS"
PROXIES_VARIABLE = "RESOLUTE_HTTP_PROXIES"
URL_VARIABLE = "RESOLUTE_HTTP_URL"
DOCS_VARIABLE = "RESOLUTE_DOCS_DIR"

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The settings of HTTP. Fields that name a variable are read from it."""

    cluster_id: str
    """UUID of the cluster."""
    grpc_port: int
    """Port at which gRPC is served."""
    grpc_address: str = ""
    """RESOLUTE_GRPC_ADDRESS: ``host:port`` that clients receive for gRPC; empty for the host that a client
    named, with the gRPC port."""
    hosts: frozenset[str] = frozenset()
    """RESOLUTE_HTTP_HOSTS: names by which the gateway may be reached, besides ``localhost`` and addresses."""
    origins: frozenset[str] = frozenset()
    """RESOLUTE_HTTP_ORIGINS: origins of other pages that may make calls, such as ``https://page.example``."""
    proxies: tuple[Network, ...] = ()
    """RESOLUTE_HTTP_PROXIES: addresses and networks of proxies, whose ``X-Forwarded-For`` says who calls."""
    url: str = ""
    """RESOLUTE_HTTP_URL: URL at which browsers reach the gateway, with the path of a proxy; empty for that of
    each request."""
    docs: Path | None = None
    """RESOLUTE_DOCS_DIR: directory of the built documentation, which is served below ``/docs``."""

    @classmethod
    def from_environment(
        cls, variables: Mapping[str, str], *, cluster_id: str, grpc_port: int
    ) -> HttpSettings:
        """Reads and checks the settings.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        return cls(
            cluster_id=cluster_id,
            grpc_port=grpc_port,
            grpc_address=variables.get("RESOLUTE_GRPC_ADDRESS", ""),
            hosts=frozenset(name.lower() for name in _items(variables.get(HOSTS_VARIABLE, ""))),
            proxies=tuple(_network(text) for text in _items(variables.get(PROXIES_VARIABLE, ""))),
            url=_url(variables.get(URL_VARIABLE, "")),
            origins=frozenset(_origin(text) for text in _items(variables.get(ORIGINS_VARIABLE, ""))),
            docs=_site(variables.get(DOCS_VARIABLE, "")),
        )

    def grpc_address_at(self, host: str) -> str:
        """Where gRPC is served, for a client that reached the gateway by a name.

        Args:
            host: The header ``Host`` of its request.
        """
        if self.grpc_address:
            return self.grpc_address
        name = urlsplit(f"//{host}").hostname or "127.0.0.1"
        return f"[{name}]:{self.grpc_port}" if ":" in name else f"{name}:{self.grpc_port}"


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _origin(text: str) -> str:
    scheme, separator, host = text.partition("://")
    if scheme not in {"http", "https"} or not separator or not host or set(host) & set("/*?#"):
        raise InvalidArgumentError(
            f"{ORIGINS_VARIABLE} has {text!r}; write origins as SCHEME://HOST[:PORT], separated by commas"
        )
    return text.lower()


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{PROXIES_VARIABLE} has {text!r}; write addresses or networks such as 10.0.0.0/24, "
            "separated by commas"
        ) from error


def _site(text: str) -> Path | None:
    if text and not (Path(text) / "index.html").is_file():
        raise InvalidArgumentError(
            f"{DOCS_VARIABLE} names {text}, where there is no index.html; build the site first, "
            "or unset the variable"
        )
    return Path(text) if text else None


def _url(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if text and (scheme not in {"http", "https"} or not separator or not rest or set(rest) & set("*?# ")):
        raise InvalidArgumentError(f"{URL_VARIABLE} is {text!r}; write it as https://HOST[:PORT][/PATH]")
    return text.rstrip("/")


def serves_http(variables: Mapping[str, str]) -> bool:
    """Whether HTTP is served: unless RESOLUTE_NO_HTTP is set and not 0."""
    return variables.get("RESOLUTE_NO_HTTP", "0") in {"", "0"}


def http_port(variables: Mapping[str, str]) -> int:
    """Reads RESOLUTE_HTTP_PORT; zero, which picks a free one, if it is not set.

    Raises:
        InvalidArgumentError: It is not a port.
    """
    text = variables.get("RESOLUTE_HTTP_PORT", "0")
    if not text.isdigit() or int(text) > 65535:
        raise InvalidArgumentError(f"RESOLUTE_HTTP_PORT is {text!r}; it must be a number from 0 to 65535")
    return int(text)
