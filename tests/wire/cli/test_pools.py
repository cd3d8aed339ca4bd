"""Machines and slots are told by resource pool, in which their numbers are unique."""

from __future__ import annotations

import json

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import cluster_service_pb2 as pb


def _two_pools(cluster: ScriptedCluster) -> None:
    cpu, gpu = pb.SLOT_KIND_CPU, pb.SLOT_KIND_GPU
    held = pb.SlotHolder(allocation_id="a", trial_number=1)
    cluster.state.slots += [
        pb.Slot(slot_id=0, kind=cpu, node=0, resource_pool="default"),
        pb.Slot(slot_id=0, kind=gpu, node=0, resource_pool="hpc", holder=held),
        pb.Slot(slot_id=1, kind=gpu, node=1, resource_pool="hpc", disabled=True),
    ]


def test_pools_are_listed_with_their_machines_and_slots(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    _two_pools(cluster)
    default, hpc = json.loads(resolute("resource-pool", "list", "--json").out)
    assert (default["name"], default["machines"], default["slots"]) == ("default", 1, 1)
    assert (hpc["name"], hpc["machines"], hpc["slots"]) == ("hpc", 2, 2)
    assert (hpc["slots_in_use"], hpc["slots_disabled"]) == (1, 1)


def test_one_pool_is_described_by_its_name(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    _two_pools(cluster)
    (hpc,) = json.loads(resolute("resource-pool", "describe", "hpc", "--json").out)
    assert hpc["name"] == "hpc"
    refused = resolute("resource-pool", "describe", "hcp")
    assert refused.code == 2
    assert "There is no resource pool 'hcp' with slots; there are: 'default', 'hpc'." in refused.err


def test_machines_of_two_pools_are_not_one(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    _two_pools(cluster)
    machines = json.loads(resolute("agent", "list", "--json").out)
    assert [(one["resource_pool"], one["id"], one["slots"]) for one in machines] == [
        ("default", 0, 1),
        ("hpc", 0, 1),
        ("hpc", 1, 1),
    ]
