"""Admins take slots out of use; it outlives the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import access_service_pb2
from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_serving.context import Role


async def slots(admin: Calls) -> dict[int, tuple[bool, bool]]:
    """Of each slot, whether it is disabled, and draining."""
    found = (await admin.cluster.GetCluster(pb2.GetClusterRequest())).slots
    return {slot.slot_id: (slot.disabled, slot.draining) for slot in found}


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
            *[("disable_slots", "slots 0")] * 3,
            ("enable_slots", "slots 0"),
            ("enable_slots", "slots 1"),
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
