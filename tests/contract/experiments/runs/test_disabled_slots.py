"""Admins take slots out of use; it outlives the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import access_service_pb2
from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_experiments.store import disabled_slots
from resolute_serving.context import Role
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database

POOLS = """
default_resource_pool: boxes
resource_pools:
  - {pool_name: default, engine: local}
  - {pool_name: boxes, engine: podman, slots: 4, slots_per_node: 2}
  - {pool_name: batch, engine: hpc}
  - {pool_name: pods, engine: kube}
  - {pool_name: actors, engine: ray}
engines:
  podman: {type: container, url: "unix:///nowhere/podman.sock"}
  hpc: {type: slurm, directory: /nowhere/runs}
  kube: {type: kubernetes, kubeconfig: /nowhere/kubeconfig}
  ray: {type: ray, address: "127.0.0.1:1", directory: /nowhere/runs}
"""
"""Pools of every type of engine; none of their daemons is there."""


async def slots(admin: Calls, *, pool: str = "default") -> dict[int, tuple[bool, bool]]:
    """Of each slot of a pool, whether it is disabled, and draining."""
    found = (await admin.cluster.GetCluster(pb2.GetClusterRequest())).slots
    return {slot.slot_id: (slot.disabled, slot.draining) for slot in found if slot.resource_pool == pool}


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with the pools, two slots on this machine."""
    (tmp_path / "pools.yaml").write_text(POOLS)
    monkeypatch.setenv("RESOLUTE_RESOURCE_POOLS", str(tmp_path / "pools.yaml"))
    monkeypatch.setenv("RESOLUTE_SLOTS", "2")


def test_slots_stay_disabled_until_they_are_enabled(play: Callable[[Scenario], None]) -> None:
    async def before(_: Running, admin: Calls) -> None:
        assert not any(disabled for disabled, _ in (await slots(admin)).values())
        for drain in (True, False, True):
            await admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[0, 0], drain=drain))
            assert (await slots(admin))[0] == (True, drain)
        await admin.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[1]))

    async def after(_: Running, admin: Calls) -> None:
        assert {slot for slot, (disabled, _) in (await slots(admin)).items() if disabled} == {0}
        await admin.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[0]))
        assert (await slots(admin))[0] == (False, False)
        rows = (await admin.access.ListAuditRows(access_service_pb2.ListAuditRowsRequest())).rows
        noted = [(row.action, row.resource) for row in rows if row.action.endswith("able_slots")]
        assert sorted(noted) == [
            *[("disable_slots", "slots 0 of pool default")] * 3,
            ("enable_slots", "slots 0 of pool default"),
            ("enable_slots", "slots 1 of pool default"),
        ]

    play(before)
    play(after)


def test_requests_that_name_no_slots_are_refused(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        with pytest.raises(InvalidArgumentError, match="slot_ids is empty"):
            await admin.cluster.DisableSlots(pb2.DisableSlotsRequest())
        with pytest.raises(InvalidArgumentError, match="there is no slot 4000"):
            await admin.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[0, 4000]))
        async with calls(running, running.user_token(name="ada", role=Role.EDITOR)) as other:
            with pytest.raises(PermissionDeniedError):
                await other.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[0]))
            with pytest.raises(PermissionDeniedError):
                await other.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[0]))

    play(scenario)


@pytest.mark.usefixtures("pools")
def test_slots_of_each_pool_that_is_placed_here_are_disabled_by_themselves(
    play: Callable[[Scenario], None],
) -> None:
    async def before(_: Running, admin: Calls) -> None:
        cluster = await admin.cluster.GetCluster(pb2.GetClusterRequest())
        told = {pool.name: pool.placed_by_engine for pool in cluster.resource_pools}
        assert next(iter(told.items())) == ("boxes", False), "the default pool is the first"
        assert told == {"boxes": False, "default": False, "batch": True, "pods": True, "actors": True}
        await admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[3, 1], drain=True))
        await admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[0, 1], resource_pool="default"))

    async def after(_: Running, admin: Calls) -> None:
        out, kept, draining = (True, False), (False, False), (True, True)
        assert await slots(admin, pool="boxes") == {0: kept, 1: draining, 2: kept, 3: draining}
        assert await slots(admin) == {0: out, 1: out}
        await admin.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[1], resource_pool="boxes"))
        assert await slots(admin, pool="boxes") == {0: kept, 1: kept, 2: kept, 3: draining}
        assert await slots(admin) == {0: out, 1: out}, "slot 1 of another pool is another slot"

    play(before)
    play(after)


@pytest.mark.usefixtures("pools")
def test_pools_whose_engine_places_by_itself_are_refused_with_its_own_command(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        remedies = {
            "batch": "`scontrol update NodeName=NODE State=DRAIN",
            "pods": "`kubectl cordon NODE`",
            "actors": "`ray drain-node",
        }
        for pool, remedy in remedies.items():
            for request in (
                admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[0], resource_pool=pool)),
                admin.cluster.EnableSlots(pb2.EnableSlotsRequest(slot_ids=[0], resource_pool=pool)),
            ):
                with pytest.raises(InvalidArgumentError) as refused:
                    await request
                assert f"the engine of pool '{pool}' assigns its slots itself" in str(refused.value)
                assert remedy in str(refused.value)
                assert [one.field for one in refused.value.violations] == ["resource_pool"]
        with pytest.raises(InvalidArgumentError, match="found 'boxen'; expected one of the pools: actors, "):
            await admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[0], resource_pool="boxen"))
        with pytest.raises(InvalidArgumentError, match="there is no slot 2; pool 'default' has 0 to 1"):
            await admin.cluster.DisableSlots(pb2.DisableSlotsRequest(slot_ids=[2], resource_pool="default"))

    play(scenario)


def test_slots_that_were_disabled_before_there_were_pools_are_those_of_this_machine(
    database_url: str,
) -> None:
    names = {"package": "resolute_experiments", "schema": "experiments"}
    database = Database(database_url, name="experiments")
    try:
        migrations.upgrade(database.engine, **names, revision="0029")
        with database.engine.begin() as connection:
            for slot, draining in ((0, True), (3, False)):
                row = {"slot_id": slot, "draining": draining, "disabled_at": 1.0}
                insert = "INSERT INTO disabled_slots VALUES (:slot_id, :draining, :disabled_at)"
                connection.execute(sa.text(insert), row)
        migrations.upgrade(database.engine, **names)
        with database.engine.begin() as connection:
            assert disabled_slots.read(connection) == {"default": {0: True, 3: False}}
            disabled_slots.write(connection, [0], pool="boxes", draining=False, now=2.0)
            assert disabled_slots.read(connection)["default"] == {0: True, 3: False}
    finally:
        database.close()
