"""The doctor's look at the address that trials elsewhere are given."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NoReturn

import pytest
from support.ports import free_port

from resolute.client.connection.home import Home
from resolute_embedded.doctor import Finding, Status
from resolute_embedded.doctor.engines import contact
from resolute_embedded.doctor.engines.address import check_address
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import EngineSettings


def findings(state: StateDirectory, kind: str, **options: str) -> list[Finding]:
    engine = EngineSettings(name="e", type=kind, options=options, pools=())
    return list(check_address(engine, state))


@pytest.fixture
def serving(tmp_path: Path) -> StateDirectory:
    """A home whose cluster says that it serves."""
    (tmp_path / "home").mkdir(mode=0o700)
    state = StateDirectory(Home(tmp_path / "home"))
    state.write_endpoint(address="127.0.0.1:9", cluster_id="c", token="t")
    return state


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"services_address": "localhost:8080"},
        {"services_address": "[::1]:8080"},
        {"services_address": "127.0.0.2:1"},
    ],
)
def test_a_loopback_address_leads_no_container_to_the_services(
    serving: StateDirectory, options: dict[str, str]
) -> None:
    (finding,) = findings(serving, "container", **options)
    assert finding.status is Status.FAULT
    assert "--host" in finding.remedy


def test_on_engines_of_bare_processes_it_serves_this_machine(serving: StateDirectory) -> None:
    (finding,) = findings(serving, "slurm")
    assert finding.status is Status.WARNING
    assert finding.detail.startswith("address is 127.0.0.1")


def test_an_address_is_connected_to_while_the_cluster_serves(serving: StateDirectory, tmp_path: Path) -> None:
    port = free_port()
    # It leads here, and is none of loopback: no machine is sure to have an interface of another address.
    address = f"0.0.0.0:{port}"
    with socket.create_server(("127.0.0.1", port)):
        (reached,) = findings(serving, "kubernetes", services_address=address)
        assert findings(StateDirectory(Home(tmp_path / "none")), "kubernetes", services_address=address) == []
    (refused,) = findings(serving, "kubernetes", services_address=address)
    assert (reached.status, refused.status) == (Status.OK, Status.FAULT)
    assert address in refused.detail


def test_of_an_engine_of_others_no_address_is_looked_at(tmp_path: Path) -> None:
    assert findings(StateDirectory(Home(tmp_path)), "theirs") == []


def test_an_engine_of_others_that_fails_is_a_fault_of_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        async def leftovers(self) -> NoReturn:
            raise KeyError("token")

        async def close(self) -> None:
            return None

    monkeypatch.setattr(contact, "create_engine", lambda *_: Broken())
    engine = EngineSettings(name="e", type="elsewhere", options={}, pools=())
    finding = contact.check_contact(engine, StateDirectory(Home(tmp_path)))
    assert finding.status is Status.FAULT
    assert finding.detail == "type 'elsewhere' failed: KeyError: 'token'"
