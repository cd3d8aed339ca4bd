"""Ports that are set aside for a run."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.backends import missing

from resolute_launch.supervisor.joining.ports import PORT_COUNT, ReservedPorts

OF_ITS_OWN = ["unshare", "--map-root-user", "--net", "sh", "-ec"]
"""Runs a shell with a network that is nobody else's."""
FEW_PORTS = "ip link set lo up; echo 40000 40023 >/proc/sys/net/ipv4/ip_local_port_range; exec "


@pytest.fixture
def reserved() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_two_runs_on_one_machine_get_ports_of_their_own(reserved: ExitStack) -> None:
    first, second = (reserved.enter_context(closing(ReservedPorts("127.0.0.1"))) for _ in range(2))
    assert len({*first.numbers, *second.numbers}) == 2 * PORT_COUNT


def test_a_port_is_held_until_its_run_takes_it(reserved: ExitStack) -> None:
    ports = reserved.enter_context(closing(ReservedPorts("127.0.0.1", 1)))
    with socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", ports.numbers[0]))
        ports.release()
        ports.release()
        other.bind(("127.0.0.1", ports.numbers[0]))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="assign"):
        ReservedPorts("192.0.2.1")


def test_a_port_is_no_other_runs_although_nothing_listens_on_it_yet() -> None:
    if subprocess.run([*OF_ITS_OWN, "true"], capture_output=True, check=False).returncode != 0:
        missing("this machine allows no network namespaces")
    # With 24 ports in all, runs that chose by chance would choose the same ones.
    script = """
from resolute_launch.supervisor.joining.ports import ReservedPorts
addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.1"]
runs = []
for address in addresses:
    runs.append(ReservedPorts(address))
    runs[-1].release()
print(len({number for run in runs for number in run.numbers}))
try:
    ReservedPorts("127.0.0.2", 1)
except OSError as failure:
    print(failure)
runs[0].close()
print(set(ReservedPorts("127.0.0.2").numbers) == set(runs[0].numbers))
"""
    launchers = Path(__file__).parents[4] / "launchers"
    command = FEW_PORTS + f'env PYTHONPATH={launchers} {sys.executable} -c "$1"'
    done = subprocess.run([*OF_ITS_OWN, command, "sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    distinct, refusal, given_back = done.stdout.splitlines()
    assert distinct == "24"
    assert "127.0.0.2" in refusal
    assert given_back == "True"
