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
    cluster.state.resource_pools += [pb.ResourcePool(name="default"), pb.ResourcePool(name="hpc")]


def _three_pools(cluster: ScriptedCluster) -> None:
    _two_pools(cluster)
    cluster.state.resource_pools.append(pb.ResourcePool(name="pods", placed_by_engine=True))


def _disabled(resolute: CommandLine) -> list[tuple[str, int]]:
    slots = json.loads(resolute("slot", "list", "--json").out)
    return [(slot["resource_pool"], slot["slot_id"]) for slot in slots if slot["disabled"]]


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
    assert "There is no resource pool 'hcp'; there are: 'default', 'hpc'." in refused.err


def test_a_pool_whose_engine_alone_knows_its_slots_is_listed_without_numbers(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    _three_pools(cluster)
    *_, pods = json.loads(resolute("resource-pool", "list", "--json").out)
    assert pods == {
        "name": "pods",
        **dict.fromkeys(("machines", "slots", "slots_in_use", "slots_disabled", "queued_trials")),
    }
    assert resolute("resource-pool", "describe", "pods").out.splitlines()[-1].split() == ["pods"]


def test_machines_of_two_pools_are_not_one(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    _two_pools(cluster)
    machines = json.loads(resolute("agent", "list", "--json").out)
    assert [(one["resource_pool"], one["id"], one["slots"]) for one in machines] == [
        ("default", 0, 1),
        ("hpc", 0, 1),
        ("hpc", 1, 1),
    ]


def test_slots_and_machines_are_named_in_their_pool(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    _three_pools(cluster)
    assert (
        "enabled: slot 1 of pool hpc\n" in resolute("slot", "enable", "1", "1", "--resource-pool", "hpc").out
    )
    assert _disabled(resolute) == []
    shown = json.loads(resolute("slot", "disable", "0", "0", "--resource-pool", "hpc", "--json").out)
    assert [(one["resource_pool"], one["slot_id"]) for one in shown] == [("hpc", 0)]
    resolute("agent", "disable", "1", "--resource-pool", "hpc")
    assert _disabled(resolute) == [("hpc", 0), ("hpc", 1)], "no slot of the default pool"
    resolute("agent", "enable", "--all", "--resource-pool", "hpc")
    resolute("agent", "disable", "0")
    assert _disabled(resolute) == [("default", 0)]


def test_all_machines_are_those_of_each_pool_that_is_placed_here(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    _three_pools(cluster)
    disabled = resolute("agent", "disable", "--all")
    assert disabled.code == 0
    assert "left out: pool pods, whose engine assigns its slots itself" in disabled.err
    assert _disabled(resolute) == [("default", 0), ("hpc", 0), ("hpc", 1)]
    resolute("agent", "enable", "--all")
    assert _disabled(resolute) == []


def test_what_cannot_be_disabled_is_refused_by_its_name(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    _three_pools(cluster)
    for command in (("agent", "disable", "7"), ("slot", "disable", "0", "3"), ("slot", "enable", "0", "3")):
        refused = resolute(*command, "--resource-pool", "pods")
        assert refused.code != 0
        assert "the engine of pool 'pods' assigns its slots itself" in refused.err
    assert "no machine 7 in pool 'default'" in resolute("agent", "disable", "7").err
    assert (
        "Machine 0 of pool 'hpc' has no slot 1"
        in resolute("slot", "disable", "0", "1", "--resource-pool", "hpc").err
    )
    assert (
        "there are: 'default', 'hpc', 'pods'" in resolute("agent", "enable", "0", "--resource-pool", "x").err
    )
    assert _disabled(resolute) == [("hpc", 1)]
