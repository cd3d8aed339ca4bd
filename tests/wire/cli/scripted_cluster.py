"""Handlers of a scripted cluster for the calls about its machines and its server."""

# ruff: noqa: N802 - the contract names the handlers

from __future__ import annotations

import uuid
from typing import Any

from wire.cli.scripted_state import State

from resolute.api.experiments.v1 import cluster_service_pb2
from resolute.errors import InvalidArgumentError
from resolute_serving.context import actor


class ClusterHandlers:
    """Answers from the slots, pools and problems of a state, and fails where a test says so."""

    state: State

    def _enter(self, method: str) -> None:
        self.state.callers.append(actor())
        self._fail(method)

    def _fail(self, name: str) -> None:
        fault = self.state.faults[name].pop(0) if self.state.faults[name] else None
        if fault is not None:
            raise fault

    async def GetCluster(self, _request: Any, _context: Any) -> Any:
        self._enter("GetCluster")
        return cluster_service_pb2.GetClusterResponse(
            version="9.9.9",
            cluster_id=str(uuid.UUID(int=1)),
            problems=self.state.problems,
            slots=self.state.slots,
            resource_pools=self.state.resource_pools,
        )

    async def DisableSlots(self, request: Any, _context: Any) -> Any:
        self._enter("DisableSlots")
        self._change_slots(request, disabled=True)
        return cluster_service_pb2.DisableSlotsResponse()

    async def EnableSlots(self, request: Any, _context: Any) -> Any:
        self._enter("EnableSlots")
        self._change_slots(request, disabled=False)
        return cluster_service_pb2.EnableSlotsResponse()

    def _change_slots(self, request: Any, *, disabled: bool) -> None:
        for pool in self.state.resource_pools:
            if pool.name == request.resource_pool and pool.placed_by_engine:
                raise InvalidArgumentError(f"the engine of pool {pool.name!r} assigns its slots itself")
        for slot in self.state.slots:
            if slot.resource_pool == request.resource_pool and slot.slot_id in request.slot_ids:
                slot.disabled = disabled

    async def FollowServerLog(self, request: Any, _context: Any) -> Any:
        self._enter("FollowServerLog")
        response = cluster_service_pb2.FollowServerLogResponse
        yield response(lines=["first", "second"][-request.tail :])
        if request.follow:
            yield response()
            yield response(lines=["third"])
