"""The context of one call through a service: its caller, and its trace."""

from __future__ import annotations

import random
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The role of a user in a workspace, or in every workspace. Each role includes those before it."""

    MEMBER = "member"
    """A role in the cluster alone: to sign in. In a workspace a member may do what the role there allows."""
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do what ``other`` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class User:
    """A caller with the account of a person or of a program."""

    name: str
    role: Role
    user_id: int = 0
    """Zero for tokens of before users had ids."""
    workspace_id: int = 0
    """The only workspace where the role counts, for the SDK in a trial; zero for the whole cluster."""
    read_only: bool = False
    """Whether the token may only read what a viewer may; the role is that of the user."""


@dataclass(frozen=True)
class TrialRun:
    """The processes of one run of one trial."""

    trial_id: str
    run: int
    experiment_id: str
    allocation_id: str
    workspace: str
    workspace_id: int = 0
    """Zero for tokens of before they named it."""
    storage: str = ""
    """Where its experiment's config places checkpoints, as ``storage_name`` writes it; empty for tokens of
    before they named it."""
    source_checkpoint_id: str = ""
    """The checkpoint from which its experiment starts, which its submitter may read; empty for none."""


@dataclass(frozen=True)
class ServiceAccount:
    """Another service of the same cluster."""

    name: str


@dataclass(frozen=True)
class Anonymous:
    """A caller without a token, in calls that need none."""


Principal = User | TrialRun | ServiceAccount | Anonymous
"""Who calls."""

_ANONYMOUS = Anonymous()

current_principal: ContextVar[Principal] = ContextVar("current_principal", default=_ANONYMOUS)
"""Who makes the call that is being handled."""

current_token_id: ContextVar[str] = ContextVar("current_token_id", default="")
"""Identifier of the token of the call that is being handled; empty for calls without, and for runs."""

current_token_expired: ContextVar[bool] = ContextVar("current_token_expired", default=False)
"""Whether that token has expired: calls that renew tokens take such ones too."""

current_trace: ContextVar[str] = ContextVar("current_trace", default="")
"""The trace id of the call that is being handled; empty outside of calls."""

current_peer: ContextVar[str] = ContextVar("current_peer", default="")
"""Who makes the call that is being handled, as gRPC names peers: of a gateway's calls its own peer."""


_traces = random.Random()  # noqa: S311 - a trace id is no secret


def new_trace() -> str:
    """Makes a trace id, without the system's random numbers: to ask for them lets go of the interpreter."""
    return f"{_traces.getrandbits(128):032x}"


def actor() -> str:
    """Names the caller in one word, for audit rows and logs."""
    principal = current_principal.get()
    if isinstance(principal, User):
        return principal.name
    if isinstance(principal, TrialRun):
        return f"trial:{principal.trial_id}.{principal.run}"
    if isinstance(principal, ServiceAccount):
        return f"service:{principal.name}"
    return "anonymous"
