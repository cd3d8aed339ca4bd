"""What scripts of determined can name and this platform does not have: each says what to use instead."""

from __future__ import annotations

from typing import Any

from resolute.errors import UnimplementedError

NO_POOLS = "machines are not bound to workspaces; quotas (`Workspace.set_quota`) limit what a workspace uses"
NO_OAUTH = "there is no OAuth; programs get tokens of their own (`AccessService.CreateToken`)"
NO_PACHYDERM = "there is no integration with Pachyderm; the metadata of a checkpoint can name its data"


def refusal(name: str, remedy: str) -> UnimplementedError:
    """An error for a name that is refused.

    Args:
        name: What was called.
        remedy: Why there is none, and what to use instead.
    """
    return UnimplementedError(f"{name} is not available: {remedy}")


class ResourcePool:
    """Refused: machines are not bound to workspaces.

    Examples:
        >>> from resolute import client
        >>> client.ResourcePool()
        Traceback (most recent call last):
        ...
        resolute.errors.UnimplementedError: ResourcePool is not available: ...
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refusal("ResourcePool", NO_POOLS)


class Oauth2ScimClient:
    """Refused: there is no OAuth.

    Examples:
        >>> from resolute import client
        >>> client.Oauth2ScimClient()
        Traceback (most recent call last):
        ...
        resolute.errors.UnimplementedError: Oauth2ScimClient is not available: ...
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refusal("Oauth2ScimClient", NO_OAUTH)
