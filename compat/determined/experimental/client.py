"""The Python SDK for people and tools: ``resolute.client``, and the names that only Determined has."""

from __future__ import annotations

from typing import Any

import resolute.client
from resolute.client import *
from resolute.client import (
    Checkpoint,
    Client,
    Experiment,
    ExperimentState,
    Trial,
    iter_trials_metrics,
    list_models,
)
from resolute.client.objects.refused import NO_POOLS, refusal

_NO_OAUTH = "there is no OAuth; `resolute token create` makes tokens for programs"

CheckpointReference = Checkpoint
ExperimentReference = Experiment
TrialReference = Trial
get_models = list_models
stream_trials_metrics = iter_trials_metrics
TERMINAL_STATES = frozenset(state for state in ExperimentState if state.is_terminal)
"""States of an experiment of which nothing will run any more."""


def add_oauth_client(domain: str, name: str) -> Any:
    """Refused: there is no OAuth."""
    raise refusal("add_oauth_client", _NO_OAUTH)


def list_oauth_clients() -> Any:
    """Refused: there is no OAuth."""
    raise refusal("list_oauth_clients", _NO_OAUTH)


def remove_oauth_client(client_id: str) -> Any:
    """Refused: there is no OAuth."""
    raise refusal("remove_oauth_client", _NO_OAUTH)


class Determined(Client):
    """A cluster, called on behalf of one user: ``resolute.Client`` with methods that only Determined has."""

    get_models = Client.list_models
    stream_trials_metrics = Client.iter_trials_metrics

    def add_oauth_client(self, domain: str, name: str) -> Any:
        """Refused: there is no OAuth."""
        add_oauth_client(domain, name)

    def list_oauth_clients(self) -> Any:
        """Refused: there is no OAuth."""
        list_oauth_clients()

    def remove_oauth_client(self, client_id: str) -> Any:
        """Refused: there is no OAuth."""
        remove_oauth_client(client_id)


class ResourcePool:
    """Refused: machines are not bound to workspaces."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refusal("ResourcePool", NO_POOLS)


class Oauth2ScimClient:
    """Refused: there is no OAuth."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refusal("Oauth2ScimClient", _NO_OAUTH)


__all__ = resolute.client.__all__ + [  # noqa: RUF005 - ruff reads this form alone
    "CheckpointReference",
    "Determined",
    "ExperimentReference",
    "Oauth2ScimClient",
    "ResourcePool",
    "TrialReference",
    "add_oauth_client",
    "get_models",
    "list_oauth_clients",
    "remove_oauth_client",
    "stream_trials_metrics",
]
