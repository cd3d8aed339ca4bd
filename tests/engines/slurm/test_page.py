"""A whole cluster whose trials are jobs of a real Slurm, by the commands of its page."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import psutil
import pytest
from support.backends import missing
from support.daemons.slurm import NODES, SlurmCluster
from support.pages.commands import blocks_of, run_script, script_of
from support.ports import free_port

PAGE = "docs/slurm.md"
EVERYWHERE = "0.0.0.0"


@pytest.mark.timeout(1000)
def test_the_commands_of_the_page_lead_from_the_settings_to_a_search(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    script = _script(tmp_path)
    said = run_script(script, tmp_path, timeout=900, variables=slurm.environment)
    assert f"{NODES} of {NODES} nodes of the cluster take jobs" in said
    assert f"nodes of pool batch: all {NODES} see {tmp_path / 'shared'}" in said
    assert len(re.findall(r"\bCOMPLETED\b", said.rpartition("+ resolute e list-trials 1")[2])) == 4
    assert re.search(r"\bbatch\b", said.rpartition("+ resolute resource-pool list")[2])


@pytest.mark.timeout(1000)
def test_nodes_reach_the_services_by_tls_at_an_address_of_the_machine(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    port = free_port()
    address = f"{_address_of_this_machine()}:{port}"
    remote = f"--host {EVERYWHERE} --remote-port {port} --tls-self-signed"
    script = _script(tmp_path).replace("resolute up --detach", f"resolute up --detach {remote}")
    script = script.replace("type: slurm\n", f"type: slurm\n    address: {address}\n")
    script = script.replace("doctor --nodes", "doctor").replace("max_trials=4", "max_trials=1")
    said = run_script(script, tmp_path, timeout=900, variables=slurm.environment)
    assert f"{address} can be reached from here" in said
    assert len(re.findall(r"\bCOMPLETED\b", said.rpartition("+ resolute e list-trials 1")[2])) == 1


def test_only_the_installation_is_left_out_of_the_page() -> None:
    left_out = [line for block in blocks_of(PAGE) if block.reason for line in block.code.splitlines()]
    assert left_out
    assert all("pip install" in line or line.startswith("python3 -m venv") for line in left_out)


def _script(folder: Path) -> str:
    script = script_of(PAGE).replace("/shared/resolute/runs", str(folder / "shared"))
    script = script.replace("/shared/resolute/venv/bin/python", sys.executable)
    return f"{script}\nresolute e list-trials 1"


def _address_of_this_machine() -> str:
    found = [each for several in psutil.net_if_addrs().values() for each in several]
    addresses = [each.address for each in found if each.family is socket.AF_INET]
    usable = [address for address in addresses if not address.startswith("127.")]
    if not usable:
        missing("this machine has no address but its loopback")
    return str(usable[0])
