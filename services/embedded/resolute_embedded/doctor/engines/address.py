"""Checks that trials on other machines can reach the services at the advertised address."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from resolute.errors import ResoluteError
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import EngineSettings

_OPTION = {
    "container": "services_address",
    "kubernetes": "services_address",
    "ray": "services_address",
    "slurm": "address",
}
"""What the option with the address is called, by type; of a type of others nothing is known."""
_APART = frozenset({"container", "kubernetes"})
"""Engines whose trials have another loopback interface than this machine, on this machine too."""
_OWN = "127.0.0.1"
"""What trials are given where no address is configured."""
_CONNECT_SECONDS = 5.0


def check_address(engine: EngineSettings, state: StateDirectory) -> Iterator[Finding]:
    """Looks at the address, and connects to it from here if the cluster of the home serves."""
    option = _OPTION.get(engine.type)
    if option is None:
        return
    subject = f"address of the services for engine {engine.name}"
    address = str(engine.options.get(option) or _OWN)
    if _is_loopback(address):
        fact = f"{option} is {address}, which leads each machine to itself"
        remedy = f"`resolute up --host ADDRESS --tls-self-signed`, and {option}: ADDRESS:PORT of the engine"
        if engine.type in _APART:
            yield fault(subject, f"{fact}, and each trial too", remedy=remedy)
        else:
            yield warning(subject, f"{fact}: only trials on this machine reach the services", remedy=remedy)
    elif _serves(state):
        yield _connected(subject, address, option)


def _serves(state: StateDirectory) -> bool:
    try:
        return state.home.read_endpoint() is not None
    except ResoluteError:
        # The look at the services has reported what is wrong with it.
        return False


def _connected(subject: str, address: str, option: str) -> Finding:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        return fault(
            subject,
            f"{address} cannot be reached from here: {error}",
            remedy=f"give {option} the host and port at which `resolute up --host` serves",
        )
    return good(subject, f"{address} can be reached from here")


def _is_loopback(address: str) -> bool:
    host = (address.rpartition(":")[0] or address).strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
