"""Whom trials trust at the services, by the address that the settings of their engine give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority

from resolute.contracts.calls.tls import ClientTls
from resolute.errors import FailedPreconditionError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.settings import read_resource_settings

REMOTE = ClientTls(authority=b"made by the services", server_name="localhost")


def environment(folder: Path, *, tls: ClientTls | None = None, http_url: str = "") -> EngineEnvironment:
    """One whose services other machines reach by TLS."""
    return EngineEnvironment(
        cluster_id="0123456789",
        address="127.0.0.1:8080",
        tls=tls,
        remote_tls=REMOTE,
        http_url=http_url,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder / "runs",
        slots=2,
        nodes=1,
    )


def test_an_address_of_other_machines_is_trusted_as_these_trust_it(tmp_path: Path) -> None:
    told = environment(tmp_path)
    assert told.terms("10.0.0.5:8080").tls == told.terms("[fd00::5]:8080").tls == REMOTE.to_json()
    assert told.terms("").tls is None, "this machine has a plain port"
    for loopback in ("127.0.0.1:8080", "[::1]:8080", "localhost:8080"):
        assert told.terms(loopback).tls is None


def test_services_that_are_the_same_everywhere_are_trusted_alike(tmp_path: Path) -> None:
    own = ClientTls(authority=b"of the operator")
    told = EngineEnvironment(**{**vars(environment(tmp_path, tls=own)), "remote_tls": None})
    assert told.terms("").tls == told.terms("10.0.0.5:8080").tls == own.to_json()


@pytest.mark.parametrize(
    ("http_url", "address", "told"),
    [
        ("http://127.0.0.1:8087", "", "http://127.0.0.1:8087"),
        ("http://127.0.0.1:8087", "10.0.0.5:8080", "http://10.0.0.5:8087"),
        ("https://[::1]:8087", "[fd00::5]:8080", "https://[fd00::5]:8087"),
        ("http://localhost", "10.0.0.5:8080", "http://10.0.0.5"),
        ("https://page.example/resolute", "10.0.0.5:8080", "https://page.example/resolute"),
        ("https://127.0.0.1:8087", "", ""),
        ("", "10.0.0.5:8080", ""),
    ],
)
def test_trials_are_told_the_gateway_that_they_reach_and_trust(
    tmp_path: Path, http_url: str, address: str, told: str
) -> None:
    assert environment(tmp_path, http_url=http_url).terms(address).http_url == told


def test_a_certificate_of_the_settings_goes_first(tmp_path: Path) -> None:
    certificate = Authority.create(tmp_path).issue(tmp_path).certificate
    told = environment(tmp_path).terms("10.0.0.5:8080", str(certificate)).tls
    assert told == {"authority": certificate.read_text(), "server_name": ""}
    with pytest.raises(FailedPreconditionError, match="cannot read"):
        environment(tmp_path).terms("10.0.0.5:8080", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("engine", "address"),
    [
        ({"type": "slurm", "directory": "/shared"}, "address"),
        ({"type": "ray", "address": "10.0.0.5:6379"}, "services_address"),
        ({"type": "container"}, "services_address"),
        ({"type": "kubernetes"}, "services_address"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_every_engine_tells_its_trials(tmp_path: Path, engine: dict[str, Any], address: str) -> None:
    def told(**more: str) -> Any:
        settings = {
            "resource_pools": [{"pool_name": "a", "engine": "far"}],
            "engines": {"far": {**engine, **more}},
        }
        path = tmp_path / "pools.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(settings))
        (far,) = read_resource_settings(path).engines
        manager: Any = create_engine(far, environment(tmp_path))
        return manager._terms.tls

    certificate = Authority.create(tmp_path).issue(tmp_path).certificate
    assert told() is None
    assert told(**{address: "10.0.0.5:8080"}) == REMOTE.to_json()
    assert told(**{address: "10.0.0.5:8080", "services_certificate": str(certificate)})["server_name"] == ""
