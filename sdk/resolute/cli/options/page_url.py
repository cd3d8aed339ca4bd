"""The URL of the cluster's page."""

from __future__ import annotations

import os

from resolute.cli.options.settings import Settings
from resolute.client.connection import discovery
from resolute.client.connection.endpoint import find_tls, named_master, no_cluster
from resolute.client.connection.home import Home
from resolute.contracts.distribution import install_command
from resolute.errors import FailedPreconditionError


def page_url(settings: Settings) -> str:
    """Returns the URL of the cluster's gateway: the one that names the cluster, or that of this machine's.

    Raises:
        FailedPreconditionError: The cluster serves no page, or its URL is not known here.
    """
    settings.apply_preferences()
    given = settings.master or named_master(os.environ)[1]
    home = Home.from_environment(os.environ)
    if given.lower().startswith(("http://", "https://")):
        tls = find_tls(given, home, os.environ)
        if discovery.grpc_address(given, tls=tls):
            return given.rstrip("/")
    local = home.read_endpoint()
    if local is not None and given in {"", local.address}:
        if local.http_url and local.has_page:
            return local.http_url
        if local.http_url:
            raise FailedPreconditionError(
                "there is no page to open: its files were left out of what serves the cluster; "
                "in a clone, `make page` builds them: then install again and start the cluster anew"
            )
        raise FailedPreconditionError(
            "the cluster of this machine serves no HTTP, so there is no page to open; start it without "
            f"--no-http, with `{install_command('gateway')}` and Python 3.11 or later"
        )
    if not given:
        raise no_cluster(home)
    raise FailedPreconditionError(
        f"the HTTP address of the cluster at {given} is not known; give it with -m http://HOST:PORT"
    )
