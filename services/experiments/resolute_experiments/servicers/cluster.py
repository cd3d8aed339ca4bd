"""Handlers of ClusterService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.api.experiments.v1 import cluster_service_pb2_grpc
from resolute.contracts import distribution
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError
from resolute_experiments.admission.submissions import check_template
from resolute_experiments.context import ServiceContext
from resolute_experiments.resources.fleet import Fleet
from resolute_experiments.store import access, runs, trials
from resolute_experiments.store.access import Template
from resolute_serving.pagination import decode_token, encode_token, page_size

_NAME_LENGTH = 200


class ClusterServicer(cluster_service_pb2_grpc.ClusterServiceServicer):
    """The cluster as a whole, and templates for configs.

    Args:
        core: What all handlers of this service share.
        fleet: The machines.
    """

    def __init__(self, core: ServiceContext, fleet: Fleet) -> None:
        self._core = core
        self._fleet = fleet

    async def GetCluster(self, request: pb2.GetClusterRequest, context: Any) -> pb2.GetClusterResponse:
        """Gives identity, version, slots and what they do."""

        def work(connection: Connection) -> pb2.GetClusterResponse:
            holders = {slot: run for run in runs.unfinalized(connection) for slot in run.slot_ids}
            numbers = {
                run.trial_id: trials.get(connection, trial_id=run.trial_id).number for run in holders.values()
            }
            slots = []
            for slot in self._fleet.slots:
                holder = holders.get(slot.id)
                slots.append(
                    pb2.Slot(
                        slot_id=slot.id,
                        kind=slot.kind.value,
                        allocation_id=holder.allocation_id if holder else "",
                        trial_number=numbers[holder.trial_id] if holder else 0,
                        node=slot.node,
                    )
                )
            return pb2.GetClusterResponse(
                cluster_id=self._core.cluster_id,
                version=distribution.version(),
                slots=slots,
                queued_trials=trials.queued_count(connection),
            )

        return await self._core.database.read(work)

    async def SetTemplate(self, request: pb2.SetTemplateRequest, context: Any) -> pb2.SetTemplateResponse:
        """Writes a template, in place of one of the same name."""
        if not request.name or len(request.name) > _NAME_LENGTH:
            raise InvalidArgumentError(f"the template's name must have 1 to {_NAME_LENGTH} characters")
        template = Template(request.name, check_template(request.name, request.config_yaml))
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            access.set_template(connection, template, now=now)
            access.record(connection, "set_template", f"template {template.name}", now=now)

        await self._core.database.write(work)
        return pb2.SetTemplateResponse()

    async def GetTemplate(self, request: pb2.GetTemplateRequest, context: Any) -> pb2.GetTemplateResponse:
        """Gives a template."""
        found = await self._core.database.read(lambda c: access.get_template(c, request.name))
        return pb2.GetTemplateResponse(template=_message(found))

    async def ListTemplates(
        self, request: pb2.ListTemplatesRequest, context: Any
    ) -> pb2.ListTemplatesResponse:
        """Lists templates by name."""
        limit = page_size(request.page_size)
        after = decode_token(request) or ""
        found = await self._core.database.read(
            lambda c: access.list_templates(c, after=after, limit=limit + 1)
        )
        more = len(found) > limit
        return pb2.ListTemplatesResponse(
            templates=[_message(template) for template in found[:limit]],
            next_page_token=encode_token(request, found[limit - 1].name) if more else "",
        )

    async def DeleteTemplate(
        self, request: pb2.DeleteTemplateRequest, context: Any
    ) -> pb2.DeleteTemplateResponse:
        """Removes a template."""
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            access.delete_template(connection, request.name)
            access.record(connection, "delete_template", f"template {request.name}", now=now)

        await self._core.database.write(work)
        return pb2.DeleteTemplateResponse()


def _message(template: Template) -> pb2.Template:
    return pb2.Template(name=template.name, config=to_value(template.config))
