"""The values of the global options, and the services that they select."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resolute.client.connection.endpoint import Endpoint
    from resolute.client.services import Services


class Settings:
    """The global options of one command line; ``click`` hands it to every command.

    Args:
        master: Address of the cluster; empty to look in the environment and the home.
        user: Act as this user; empty for the user of the token.
    """

    def __init__(self, *, master: str = "", user: str = "") -> None:
        self.master = master
        self.user = user
        self.signs_in = False
        """Whether the command signs somebody in, and so sends no token."""
        self._services: Services | None = None

    def services(self) -> Services:
        """The services of the cluster; the connection opens with the first call.

        Raises:
            FailedPreconditionError: No cluster is named anywhere.
            InvalidArgumentError: The address is not one.
        """
        if self._services is None:
            # Loading gRPC takes longer than everything that commands without a cluster do.
            from resolute.client.connection.session import Session
            from resolute.client.services import Services

            self.apply_preferences()
            self._services = Services(Session.find(self.master, user=self.user))
        return self._services

    def apply_preferences(self) -> None:
        """Takes what the command line leaves open from `resolute config set`."""
        from resolute.client.preferences import preferred

        self.master, self.user = preferred(self.master, self.user, os.environ)

    def endpoint(self) -> Endpoint | None:
        """The cluster that calls went to; None before there was any."""
        return None if self._services is None else self._services.session.endpoint

    def by_password(self) -> bool:
        """Whether calls were made by a password instead of the endpoint's token."""
        return self.signs_in or (self._services is not None and self._services.session.by_password)

    def close(self) -> None:
        """Closes the connection."""
        if self._services is not None:
            self._services.session.close()
            self._services = None
