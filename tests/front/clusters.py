"""A proxy in front of each cluster of a session: tests of the command line go through it as they are."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from front.proxies import Proxy, proxy
from support.certificates import Authority
from support.ports import free_port

from resolute.client.connection import trust
from resolute.client.connection.home import Home


@dataclass(frozen=True)
class ClusterFronts:
    """Runs a proxy for each home that is served, until ``stack`` is closed.

    To the user of a home it is as if the proxy's certificate had been confirmed, and the operator had logged
    in. Who logs out is the operator again, as without a proxy.
    """

    kind: str
    """nginx or envoy."""
    folder: Path
    """Where the proxies' files are."""
    authority: Authority
    """Signs their certificates."""
    stack: ExitStack
    _ports: dict[Path, int] = field(default_factory=dict)
    _proxies: dict[Path, Proxy] = field(default_factory=dict)

    def server_variables(self, home: Path) -> dict[str, str]:
        """HTTP, and the address that clients are told."""
        port = self._ports.setdefault(home, free_port())
        return {"RESOLUTE_NO_HTTP": "", "RESOLUTE_GRPC_ADDRESS": f"localhost:{port}"}

    def client_variables(self, home: Path) -> dict[str, str]:
        """The proxy's URL, for homes that have one, and whom to trust."""
        trusted = {"RESOLUTE_MASTER_CERT": str(self.authority.file)}
        running = self._proxies.get(home)
        if running is None:
            return trusted
        credential = Home(home).credential_file(running.address)
        if not credential.exists():
            credential.parent.mkdir(exist_ok=True, mode=0o700)
            # The cluster writes another one when it starts again.
            credential.symlink_to(Home(home).token_file)
        return {**trusted, "RESOLUTE_MASTER": running.url}

    def serve(self, home: Path) -> None:
        """Starts the home's proxy. A cluster that starts again has the ports that it had."""
        if home in self._proxies:
            return
        endpoint = json.loads((home / "endpoint.json").read_text())
        http_port = _port(endpoint["http_url"])
        folder = self.folder / str(len(self._proxies))
        folder.mkdir()
        running = self.stack.enter_context(
            proxy(
                self.kind,
                folder,
                grpc_port=_port(endpoint["address"]),
                http_ports=(http_port, http_port),
                port=self._ports[home],
                authority=self.authority,
            )
        )
        self._proxies[home] = running
        trust.save(Home(home), running.address, self.authority.trusted())


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
