"""Ports that are set aside for a run."""

from __future__ import annotations

import socket

import pytest

from resolute_launch.ports import PORT_COUNT, ReservedPorts


def test_two_runs_on_one_machine_get_ports_of_their_own() -> None:
    first, second = ReservedPorts("127.0.0.1"), ReservedPorts("127.0.0.1")
    try:
        assert len({*first.numbers, *second.numbers}) == 2 * PORT_COUNT
    finally:
        first.release()
        second.release()


def test_a_port_is_held_until_its_run_takes_it() -> None:
    ports = ReservedPorts("127.0.0.1", 1)
    with socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", ports.numbers[0]))
        ports.release()
        ports.release()
        other.bind(("127.0.0.1", ports.numbers[0]))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="assign"):
        ReservedPorts("192.0.2.1")
