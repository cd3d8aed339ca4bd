"""`resolute doctor --nodes` against a real Slurm: what its nodes see, and what they do not."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from support.daemons.slurm import NODES, SlurmCluster

from resolute.client.connection.home import Home
from resolute_embedded.doctor import Finding, Status
from resolute_embedded.doctor.engines.nodes import check_nodes
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import EngineSettings, PoolSettings
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.node_check import NodeView, look_from_nodes
from resolute_engines.slurm.settings import SlurmPoolOptions


def found(slurm: SlurmCluster, directory: Path, *, python: str = sys.executable) -> Finding:
    pool = PoolSettings(name="batch", options={"slot_type": "cpu"}, where="resource_pools[0]")
    options = {"directory": str(directory), "conf": slurm.environment["SLURM_CONF"], "python": python}
    settings = EngineSettings(name="hpc", type="slurm", options=options, pools=(pool,))
    (finding,) = check_nodes(settings, StateDirectory(Home(directory.with_name("home"))))
    return finding


def looked(
    slurm: SlurmCluster, directory: Path, *, code: tuple[str, ...], seconds: float = 120.0
) -> NodeView:
    return asyncio.run(
        look_from_nodes(
            SlurmClient(SlurmCommands(environment=slurm.environment)),
            pool=SlurmPoolOptions(),
            directory=directory,
            code=code,
            deadline_seconds=seconds,
        )
    )


def test_nodes_that_see_all_are_well_and_nothing_is_left(slurm: SlurmCluster, tmp_path: Path) -> None:
    finding = found(slurm, tmp_path)
    assert (finding.status, f"all {NODES} see {tmp_path}" in finding.detail) == (Status.OK, True)
    assert list(tmp_path.iterdir()) == []
    client = SlurmClient(SlurmCommands(environment=slurm.environment))
    assert asyncio.run(client.live(prefix="resolute-doctor-")) == ()


def test_nodes_without_resolute_are_named_with_what_they_said(slurm: SlurmCluster, tmp_path: Path) -> None:
    finding = found(slurm, tmp_path, python="/none/python")
    assert finding.status is Status.FAULT
    assert f"cannot be used at /none/python on {NODES} of {NODES}: node0: " in finding.detail
    assert "not found" in finding.detail
    assert finding.remedy


def test_a_node_on_which_the_directory_is_another_is_named(slurm: SlurmCluster, tmp_path: Path) -> None:
    # As with storage that is not mounted there: that node's words are nowhere to be seen.
    hides = 'if [ "$SLURMD_NODENAME" = node2 ]; then rm node2.*; fi'
    view = looked(slurm, tmp_path, code=("sh", "-c", hides))
    assert (view.blind, view.broken) == (("node2",), {})


def test_a_job_that_waits_for_busy_nodes_is_taken_back(slurm: SlurmCluster, tmp_path: Path) -> None:
    client = SlurmClient(SlurmCommands(environment=slurm.environment))
    busy = JobSpec(
        name="busy-doctor",
        script="#!/bin/sh\nexec sleep 600\n",
        nodes=NODES,
        output="/dev/null",
        options=("--exclusive",),
    )
    asyncio.run(client.submit(busy))
    try:
        view = looked(slurm, tmp_path, code=("true",), seconds=5.0)
        assert view.waits
        assert asyncio.run(client.live(prefix="resolute-doctor-")) == ()
        assert list(tmp_path.iterdir()) == []
    finally:
        asyncio.run(client.cancel(busy.name))


def test_a_directory_that_this_machine_cannot_write_is_a_fault(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = found(slurm, tmp_path / "file")
    assert finding.status is Status.FAULT
    assert f"this machine cannot write to {tmp_path / 'file'}: Not a directory" in finding.detail
