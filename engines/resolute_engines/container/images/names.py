"""Names of images, and the credentials for their registries."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from resolute.errors import FailedPreconditionError

_FINAL_STATUSES = frozenset({400, 401, 403, 404})
_FINAL_WORDS = (
    *("not found", "manifest unknown", "name unknown", "no matching manifest", "invalid reference"),
    *("denied", "unauthorized", "authentication required", "short-name"),
)
"""Messages about an image that is missing, or that these credentials may not read."""
_DOCKER_HUB = "docker.io"
_SPELLINGS = {
    _DOCKER_HUB: ("https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"),
}
"""As what else ``docker login`` and others write a registry."""


class UnpulledImageError(FailedPreconditionError):
    """An image cannot be pulled now: its registry is unavailable, overloaded, or limits the rate of pulls."""


def unpulled(image: str, reason: str, *, status: int = 0) -> FailedPreconditionError:
    """The failure of a pull, by what the engine says of it.

    Args:
        image: The image.
        reason: The engine's words, which do not always name it.
        status: That of HTTP, if it was one of a failure.

    Returns:
        An UnpulledImageError, unless it would never succeed.
    """
    final = status in _FINAL_STATUSES or any(words in reason.lower() for words in _FINAL_WORDS)
    kind = FailedPreconditionError if final else UnpulledImageError
    return kind(f"image {image} cannot be pulled: {reason}")


def with_tag(image: str) -> str:
    """The name of one image: without a tag or a digest Docker's API pulls every tag that there is."""
    _, _, last = image.rpartition("/")
    return image if ":" in last or "@" in last else f"{image}:latest"


def registry_of(image: str) -> str:
    """The registry that has an image: what its name begins with, if that is a host, or else Docker Hub."""
    first, separator, _ = image.partition("/")
    is_host = bool(separator) and ("." in first or ":" in first or first == "localhost")
    return first if is_host else _DOCKER_HUB


def registry_header(path: Path, image: str) -> str:
    """The value of ``X-Registry-Auth`` with which an image is pulled; empty for a registry that wants none.

    Args:
        path: File with credentials, as ``docker login`` and ``podman login`` write it.
        image: The image.

    Raises:
        FailedPreconditionError: The file cannot be read, or leaves the credentials to another program.
    """
    try:
        document = json.loads(path.read_text())
        kept = document.get("auths") or {}
        registry = registry_of(image)
        names = (registry, f"https://{registry}", *_SPELLINGS.get(registry, ()))
        credentials = next((kept[name] for name in names if name in kept), None)
        return "" if credentials is None else _header(credentials, registry)
    except (OSError, ValueError, AttributeError) as failure:
        raise FailedPreconditionError(
            f"credentials for registries cannot be read from {path} ({failure}): write it by "
            f"`podman login --authfile {path} {registry_of(image)}`"
        ) from failure


def _header(entry: dict[str, Any], registry: str) -> str:
    header = {"serveraddress": registry}
    if token := entry.get("identitytoken"):
        header["identitytoken"] = token
    else:
        # An empty entry says that a program of the user's has them.
        user, separator, password = base64.b64decode(entry.get("auth") or "").decode().partition(":")
        if not separator:
            raise ValueError(f"it has no user and password for {registry}")
        header |= {"username": user, "password": password}
    return base64.urlsafe_b64encode(json.dumps(header).encode()).decode()
