"""Users, their tokens and audit entries, as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any


class UserRole(Enum):
    """The permissions of a user in every workspace or in a single one. Each role includes those before it.

    Examples:
        >>> from resolute import client
        >>> client.whoami().role
        <UserRole.ADMIN: 'admin'>
    """

    MEMBER = "member"
    """In the cluster alone: to sign in. In a workspace a member may do what the role there allows."""
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"
    UNSPECIFIED = "unspecified"
    """A role that this client is too old to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """A user at one moment."""

    id: int
    """Identifies the user, whatever the name."""
    name: str
    role: UserRole
    active: bool
    """Whether anybody may act as this user."""
    has_password: bool
    create_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """An issued token, without its secret text, which is stored nowhere."""

    id: str
    username: str
    """Name of the user whom it authenticates; empty for a service."""
    description: str
    create_time: datetime | None
    expire_time: datetime | None
    revoked: bool
    """Whether it was ended before its time."""
    kind: str = ""
    """How it came to be: access, sign-in, operator, service or run."""
    parent_id: str = ""
    """The token with which it ends; empty for none."""
    service: str = ""
    """The service that it authenticates; empty for a user."""
    read_only: bool = False
    """Whether it may only read, with the role viewer at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A newly issued token with its secret text."""

    id: str
    text: str
    expire_time: datetime | None
    username: str = ""
    """Whom it speaks for."""
    device_token: str = ""
    """For the next login from this device; empty for a token that is not of a login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """An entry of the audit trail: a change and the user who made it."""

    time: datetime | None
    actor: str
    action: str
    resource: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRecord:
    """The total use of a workspace's experiments, or its bound. A bound of zero means no bound."""

    live_experiments: int
    slots: int
    storage_bytes: int = 0
    """Bytes of checkpoints; in lists, what is used is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRecord:
    """A workspace at one moment."""

    id: int
    """The small number that people use."""
    name: str
    owner: str
    owner_id: int | None = None
    """None for no user."""
    archived: bool
    quota: QuotaRecord
    used: QuotaRecord
    project_count: int
    experiment_count: int
    create_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRoleRecord:
    """A role of a user in one workspace."""

    user: str
    """Name of the user."""
    workspace: str
    """Name of the workspace."""
    role: UserRole
    update_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRecord:
    """A project at one moment."""

    id: int
    """The small number that people use."""
    name: str
    workspace: str
    workspace_id: int = 0
    description: str
    notes: str
    owner: str
    owner_id: int | None = None
    """None for no user."""
    archived: bool
    experiment_count: int
    create_time: datetime | None
