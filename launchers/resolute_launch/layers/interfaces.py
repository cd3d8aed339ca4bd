"""Looks up the network interface by which this machine reaches another one."""

from __future__ import annotations

import fcntl
import socket
import struct

_LOOPBACK = "127.0.0.1"
_ADDRESS_OF = 0x8915
"""SIOCGIFADDR: asks the kernel for an interface's address. psutil knows it too, but need not be there."""


def interface_to(address: str) -> str:
    """Returns the interface by which this machine reaches an address: the one that peers can answer to.

    Args:
        address: An IPv4 address, or a name that has one.

    Returns:
        Its name; empty if there is no way there, or by no interface that the kernel tells an address of.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: it only asks the kernel for the way.
            probe.connect((address, 9))
        except OSError:
            return ""
        ours = probe.getsockname()[0]
        # All of 127.0.0.0/8 is the loopback's, which names but one of its addresses.
        ours = _LOOPBACK if ours.startswith("127.") else ours
        names = (name for _, name in socket.if_nameindex() if _address_of(name, probe) == ours)
        return next(names, "")


def _address_of(interface: str, probe: socket.socket) -> str:
    asked = struct.pack("256s", interface.encode())
    try:
        return socket.inet_ntoa(fcntl.ioctl(probe, _ADDRESS_OF, asked)[20:24])
    except OSError:
        # It has none.
        return ""
