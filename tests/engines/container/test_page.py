"""A whole cluster whose trials are containers of a real Podman, or Docker, by the commands of their page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.engines.containers.image import IMAGE
from support.engines.containers.service import ContainerService
from support.pages.commands import blocks_of, run_script, script_of
from support.ports import free_port

PAGE = "docs/containers.md"
AFTERWARDS = """
resolute e list-trials 1
resolute e list-checkpoints 1
# What is left of a run is removed a moment after its end.
id='import json, sys; print(json.load(sys.stdin)["cluster_id"])'
mine="--filter label=resolute.cluster=$(resolute master info --json | python3 -c "$id")"
until [ -z "$(CLIENT ps --all --quiet $mine)$(CLIENT volume ls --quiet $mine)" ]; do sleep 1; done
"""


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("name", ["podman", "docker"])
def test_the_commands_of_the_page_lead_from_the_settings_to_a_search(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    service: ContainerService = request.getfixturevalue(name)
    client = {"podman": "podman", "docker": f"docker --host {service.url}"}[name]
    script, storage = script_of(PAGE), tmp_path / "checkpoints"
    here = {
        "docker.io/library/python:3.11-slim": IMAGE,
        "unix:///run/podman/podman.sock": service.url,
        "10.0.0.5": service.host,
        "8080": str(free_port()),
        "/srv/checkpoints": str(storage),
    }
    for named, found in here.items():
        assert named in script
        script = script.replace(named, found)
    said = run_script(script + AFTERWARDS.replace("CLIENT", client), tmp_path, timeout=900)
    assert "it answers, and has 0 runs of this cluster" in said
    assert f"{IMAGE} is there" in said
    listed, _, kept = said.rpartition("+ resolute e list-trials 1")[2].partition(
        "+ resolute e list-checkpoints"
    )
    assert len(re.findall(r"\bCOMPLETED\b", listed)) == 4
    # What the page's user has written, the services have read, and removed what was not to be kept.
    written = list(storage.glob("workspaces-*/1/*"))
    assert len(written) == len(re.findall(r"\bCOMPLETED\b", kept)) > 0
    assert {path.stat().st_uid for path in (*storage.iterdir(), *written)} == {1000}
    assert re.search(r"\bboxes\b", said.rpartition("+ resolute resource-pool list")[2])


def test_only_installations_and_the_firewall_are_left_out_of_the_page() -> None:
    left_out = [line for block in blocks_of(PAGE) if block.reason for line in block.code.splitlines()]
    assert left_out
    assert all(line.startswith(("systemctl enable", "pip install", "iptables")) for line in left_out)
