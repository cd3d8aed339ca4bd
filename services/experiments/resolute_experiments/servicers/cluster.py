"""Handlers of ClusterService."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.api.experiments.v1 import template_pb2
from resolute.contracts import distribution
from resolute.contracts.values import to_value
from resolute_engines.protocol import Placement
from resolute_experiments.accounts.store import locations
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.context import ServiceContext
from resolute_experiments.scheduling.disabling import disable, enable
from resolute_experiments.servicers.checks.slots import named_slots
from resolute_experiments.servicers.messages.experiments import timestamp
from resolute_experiments.store import audit, disabled_slots, runs, templates, trials
from resolute_experiments.store import schema as tables
from resolute_experiments.store.templates import Template
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES
from resolute_serving.auth.grants import current_grants
from resolute_serving.auth.policy.resources import Kind, Resource
from resolute_serving.filters import any_of
from resolute_serving.observability.asked_disks import AskedDisks
from resolute_serving.observability.disks import full_database
from resolute_serving.validation import check_length, invalid

_NAME_LENGTH = 200
_CONFIG_LENGTH = 1_000_000


class ClusterHandlers:
    """The part of ClusterService about the cluster as a whole and templates for configs.

    Args:
        core: The context that all handlers share.
        fleet: The engines.
        directories: The directories to which this service and its runs write.
        reader: Reads templates.
    """

    def __init__(
        self,
        core: ServiceContext,
        fleet: Fleet,
        *,
        disks: AskedDisks,
        reader: ConfigReader,
    ) -> None:
        self._core = core
        self._reader = reader
        self._fleet = fleet
        self._disks = disks

    async def GetCluster(self, request: pb2.GetClusterRequest, context: Any) -> pb2.GetClusterResponse:
        """Returns identity, version, slots and what they do."""
        problems = await self._problems()

        def work(connection: Connection) -> pb2.GetClusterResponse:
            disabled = disabled_slots.read(connection)
            holders = {
                (run.resource_pool, slot): run
                for run in runs.unfinalized(connection)
                for slot in run.slot_ids
            }
            slots = []
            pools = self._fleet.pools.all()
            for pool in pools:
                placed_here = pool.placement is Placement.OURS
                out_of_use = disabled.get(pool.name, {}) if placed_here else {}
                for slot in pool.slots:
                    holder = holders.get((pool.name, slot.id)) if placed_here else None
                    slots.append(
                        pb2.Slot(
                            slot_id=slot.id,
                            kind=pb2.SlotKind.Value(f"SLOT_KIND_{slot.kind.name}"),
                            node=slot.node,
                            holder=_holder(connection, holder) if holder else None,
                            disabled=slot.id in out_of_use,
                            draining=out_of_use.get(slot.id, False),
                            resource_pool=pool.name,
                        )
                    )
            return pb2.GetClusterResponse(
                problems=problems,
                cluster_id=self._core.cluster_id,
                version=distribution.version(),
                slots=slots,
                queued_trials=trials.queued_count(connection),
                resource_pools=[
                    pb2.ResourcePool(name=pool.name, placed_by_engine=pool.placement is Placement.ENGINE)
                    for pool in pools
                ],
            )

        return await self._core.database.read(work)

    async def _problems(self) -> list[str]:
        problems = list((await self._disks.problems()).now)
        if self._core.database.disk_full and not problems:
            problems.append(full_database(self._core.database.name))
        return [*problems, *self._fleet.problems()]

    async def DisableSlots(self, request: pb2.DisableSlotsRequest, context: Any) -> pb2.DisableSlotsResponse:
        """Lets no run start on slots any more."""
        named = named_slots(self._fleet, request.slot_ids, pool_name=request.resource_pool)

        def work(connection: Connection) -> None:
            timing = self._core.timing()
            disable(connection, named.slot_ids, pool=named.pool, drain=request.drain, timing=timing)

        await self._core.database.write(work)
        self._core.notifier.notify(SIGNAL_CHANGES, SCHEDULER_WAKEUP)
        return pb2.DisableSlotsResponse()

    async def EnableSlots(self, request: pb2.EnableSlotsRequest, context: Any) -> pb2.EnableSlotsResponse:
        """Lets runs start on slots again."""
        named = named_slots(self._fleet, request.slot_ids, pool_name=request.resource_pool)
        now = self._core.clock.time()
        await self._core.database.write(lambda c: enable(c, named.slot_ids, pool=named.pool, now=now))
        self._core.notifier.notify(SCHEDULER_WAKEUP)
        return pb2.EnableSlotsResponse()

    async def SetTemplate(self, request: pb2.SetTemplateRequest, context: Any) -> pb2.SetTemplateResponse:
        """Writes a template; replaces one of the same name."""
        if not request.name or len(request.name) > _NAME_LENGTH:
            raise invalid("name", f"the name of a template must have 1 to {_NAME_LENGTH} characters")
        check_length(request.config_yaml, field="config_yaml", most=_CONFIG_LENGTH)
        now = self._core.clock.time()
        config = await self._reader.template(request.config_yaml, name=request.name)
        written = Template(name=request.name, config=config, updated_at=now)

        def work(connection: Connection) -> None:
            templates.write(connection, written)
            audit.record(connection, "set_template", f"template {written.name}", now=now)

        await self._core.database.write(work)
        return pb2.SetTemplateResponse(template=_message(written))

    async def GetTemplate(self, request: pb2.GetTemplateRequest, context: Any) -> pb2.GetTemplateResponse:
        """Returns a template."""
        template = await self._core.database.read(lambda c: templates.get(c, request.name))
        return pb2.GetTemplateResponse(template=_message(template))

    async def ListTemplates(
        self, request: pb2.ListTemplatesRequest, context: Any
    ) -> pb2.ListTemplatesResponse:
        """Lists templates."""
        query = sa.select(tables.templates).where(*any_of(request, {"names": tables.templates.c.name}))
        page = await self._core.database.read(lambda c: templates.ORDERING.page(c, request, query))
        return pb2.ListTemplatesResponse(
            templates=[_message(templates.template(row)) for row in page.rows],
            next_page_token=page.next_page_token,
        )

    async def DeleteTemplate(
        self, request: pb2.DeleteTemplateRequest, context: Any
    ) -> pb2.DeleteTemplateResponse:
        """Deletes a template."""
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            templates.delete(connection, request.name)
            audit.record(connection, "delete_template", f"template {request.name}", now=now)

        await self._core.database.write(work)
        return pb2.DeleteTemplateResponse()


def _holder(connection: Connection, run: runs.Run) -> pb2.SlotHolder:
    grants = current_grants.get()
    if grants.visible is not None:
        (workspace_id,) = locations.workspaces_of(
            connection, [Resource(Kind.EXPERIMENT, run.experiment_id)]
        ).values()
        if not grants.sees(workspace_id):
            return pb2.SlotHolder()
    return pb2.SlotHolder(
        allocation_id=run.allocation_id,
        trial_id=run.trial_id,
        trial_number=trials.get(connection, trial_id=run.trial_id).number,
    )


def _message(template: Template) -> template_pb2.Template:
    return template_pb2.Template(
        name=template.name, config=to_value(template.config), update_time=timestamp(template.updated_at)
    )
