"""The functions of the client: one cluster for a whole script, with a login at the first call."""

from __future__ import annotations

import logging

from resolute.client.client import Client
from resolute.client.services import Services

_log = logging.getLogger("resolute.client")


class _ScriptClient(Client):
    """The cluster that the functions call."""

    def __init__(self) -> None:
        self.cluster: Client | None = None

    @property
    def services(self) -> Services:
        """The services of the cluster that is logged in to, by now at the latest."""
        if self.cluster is None:
            self.cluster = Client()
        return self.cluster.services


_SCRIPT = _ScriptClient()


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Chooses the cluster and the user for the functions of this module.

    Args:
        master: The cluster's address; None for the one that ``Client`` uses.
        user: Name of the user to act as; None for the one that ``Client`` uses.
        password: Password of ``user``, which may be empty; None where a stored token does.
        cert_path: PEM file of the authorities that sign the cluster's certificate; None for a connection
            without TLS.
        cert_name: Host name that the cluster's certificate must have, if it is not that of the address.
        noverify: Has no effect: certificates are always verified.

    Raises:
        ValueError: The script is logged in already, perhaps because another function came first.

    Examples:
        >>> from resolute import client
        >>> client.login()
        >>> client.get_session_username()
        'admin'
        >>> client.logout()
    """
    if _SCRIPT.cluster is not None:
        raise ValueError(
            "You can only call login() once, and before every other function; call logout() to log in anew"
        )
    _SCRIPT.cluster = Client(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Closes the connection and forgets the cluster. Without a login it does nothing but log a warning.

    Examples:
        >>> from resolute import client
        >>> client.login()
        >>> client.logout()
    """
    if _SCRIPT.cluster is None:
        _log.warning("logout() has no effect: this script is not logged in")
        return
    _SCRIPT.cluster.logout()
    _SCRIPT.cluster = None


get_session_username = _SCRIPT.get_session_username
whoami = _SCRIPT.whoami
create_experiment = _SCRIPT.create_experiment
get_experiment = _SCRIPT.get_experiment
list_experiments = _SCRIPT.list_experiments
create_user = _SCRIPT.create_user
get_user_by_id = _SCRIPT.get_user_by_id
get_user_by_name = _SCRIPT.get_user_by_name
list_users = _SCRIPT.list_users
create_workspace = _SCRIPT.create_workspace
get_workspace = _SCRIPT.get_workspace
list_workspaces = _SCRIPT.list_workspaces
delete_workspace = _SCRIPT.delete_workspace
get_trial = _SCRIPT.get_trial
chart = _SCRIPT.chart
get_checkpoint = _SCRIPT.get_checkpoint
create_model = _SCRIPT.create_model
get_model = _SCRIPT.get_model
get_model_by_id = _SCRIPT.get_model_by_id
list_models = _SCRIPT.list_models
get_model_labels = _SCRIPT.get_model_labels
iter_trials_metrics = _SCRIPT.iter_trials_metrics
stream_trials_training_metrics = _SCRIPT.stream_trials_training_metrics
stream_trials_validation_metrics = _SCRIPT.stream_trials_validation_metrics
