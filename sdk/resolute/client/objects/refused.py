"""Calls of older scripts that are not supported: each raises an error that names the replacement."""

from __future__ import annotations

from resolute.errors import UnimplementedError

NO_POOLS = "machines are not bound to workspaces; quotas (`Workspace.set_quota`) limit what a workspace uses"
NO_PACHYDERM = "there is no integration with Pachyderm; the metadata of a checkpoint can name its data"


def refusal(name: str, remedy: str) -> UnimplementedError:
    """An error for a name that is refused.

    Args:
        name: What was called.
        remedy: Why there is none, and what to use instead.
    """
    return UnimplementedError(f"{name} is not available: {remedy}")
