"""A whole cluster whose trials run on the nodes of a real Ray, by the commands of its page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.daemons.ray import PYTHON, RayCluster
from support.pages.commands import blocks_of, run_script, script_of

from resolute.client.connection.home import Home
from resolute_embedded.doctor import Status
from resolute_embedded.doctor.engines.nodes import check_nodes
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import EngineSettings, PoolSettings

PAGE = "docs/ray.md"


@pytest.mark.timeout(1000)
def test_the_commands_of_the_page_lead_from_the_settings_to_a_search(ray: RayCluster, tmp_path: Path) -> None:
    # Ray has an interpreter of its own here, and the trials have that of the tests.
    apart = f'"{ray.address}", driver_python: {PYTHON}, python: {sys.executable}'
    script = script_of(PAGE).replace('"10.0.0.5:6379"', apart)
    script += "\nresolute e list-trials 1\nresolute t describe 1"
    said = run_script(script, tmp_path, timeout=900)
    assert "it answers, and has 0 runs of this cluster" in said
    assert f"all 2 have Resolute at {sys.executable}" in said
    listed = said.rpartition("+ resolute e list-trials 1")[2].partition("+ resolute t describe")[0]
    assert len(re.findall(r"\bCOMPLETED\b", listed)) == 4
    assert re.search(r"\bnodes\b", said.rpartition("+ resolute resource-pool list")[2])


def test_doctor_names_the_nodes_without_resolute_and_what_they_said(ray: RayCluster, tmp_path: Path) -> None:
    options = {"address": ray.address, "driver_python": str(PYTHON), "python": "/none/python"}
    pool = PoolSettings(name="nodes", options={"slot_type": "cpu"}, where="resource_pools[0]")
    settings = EngineSettings(name="far", type="ray", options=options, pools=(pool,))
    (finding,) = check_nodes(settings, StateDirectory(Home(tmp_path)))
    assert finding.status is Status.FAULT
    assert "cannot be used at /none/python on 2 of 2: " in finding.detail
    assert "No such file or directory" in finding.detail
    assert finding.remedy


def test_only_the_installation_and_the_nodes_are_left_out_of_the_page() -> None:
    left_out = [block.code for block in blocks_of(PAGE) if block.reason]
    assert all(
        line.startswith(("pip install", "ray start")) for code in left_out for line in code.splitlines()
    )
