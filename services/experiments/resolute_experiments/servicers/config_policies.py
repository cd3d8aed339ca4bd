"""Handlers of ConfigPoliciesService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import config_policies_pb2
from resolute.api.experiments.v1 import config_policies_service_pb2 as pb2
from resolute.api.experiments.v1.config_policies_service_pb2_grpc import ConfigPoliciesServiceServicer
from resolute.contracts.values import to_value
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.context import ServiceContext
from resolute_experiments.servicers.messages.experiments import timestamp
from resolute_experiments.store import audit, config_policies
from resolute_experiments.store.config_policies import CLUSTER, ConfigPolicies
from resolute_serving.validation import check_length, invalid

_LONGEST = 64 * 1024


class ConfigPoliciesServicer(ConfigPoliciesServiceServicer):
    """The handlers of admins' policies for configs.

    Args:
        core: The context that all handlers share.
        reader: Reads documents of policies.
    """

    def __init__(self, core: ServiceContext, *, reader: ConfigReader) -> None:
        self._core = core
        self._reader = reader

    async def SetConfigPolicies(
        self, request: pb2.SetConfigPoliciesRequest, context: Any
    ) -> pb2.SetConfigPoliciesResponse:
        """Sets policies in place of all that were there."""
        check_length(request.policies_yaml, field="policies_yaml", most=_LONGEST)
        now = self._core.clock.time()

        def look(connection: Connection) -> tuple[ConfigPolicies | None, ConfigPolicies]:
            empty = _empty(connection, request.workspace_id, now=now)
            above = None if request.workspace_id == CLUSTER else config_policies.find(connection, CLUSTER)
            return above, empty

        above, empty = await self._core.database.read(look)
        policies = await self._reader.policies(request.policies_yaml, above=above, below=empty)

        def work(connection: Connection) -> None:
            _empty(connection, request.workspace_id, now=now)
            config_policies.write(connection, policies)
            audit.record(connection, "set_config_policies", policies.label, now=now)

        await self._core.database.write(work)
        from resolute_experiments.admission.policy_documents import overlaps  # loaded with the models

        return pb2.SetConfigPoliciesResponse(policies=_message(policies), warnings=overlaps(policies, above))

    async def GetConfigPolicies(
        self, request: pb2.GetConfigPoliciesRequest, context: Any
    ) -> pb2.GetConfigPoliciesResponse:
        """Returns policies."""

        def work(connection: Connection) -> ConfigPolicies:
            empty = _empty(connection, request.workspace_id, now=0)
            return config_policies.find(connection, request.workspace_id) or empty

        return pb2.GetConfigPoliciesResponse(policies=_message(await self._core.database.read(work)))

    async def DeleteConfigPolicies(
        self, request: pb2.DeleteConfigPoliciesRequest, context: Any
    ) -> pb2.DeleteConfigPoliciesResponse:
        """Removes policies."""
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            label = _empty(connection, request.workspace_id, now=now).label
            if config_policies.delete(connection, request.workspace_id):
                audit.record(connection, "delete_config_policies", label, now=now)

        await self._core.database.write(work)
        return pb2.DeleteConfigPoliciesResponse()


def _empty(connection: Connection, workspace_id: int, *, now: float) -> ConfigPolicies:
    """Policies without content of the workspace, which must exist, or of the cluster."""
    if workspace_id < CLUSTER:
        raise invalid("workspace_id", f"workspace_id is {workspace_id}; give 0 for the cluster, or more")
    name = "" if workspace_id == CLUSTER else workspaces.get(connection, number=workspace_id).name
    return ConfigPolicies(workspace_number=workspace_id, workspace_name=name, updated_at=now)


def _message(policies: ConfigPolicies) -> config_policies_pb2.ConfigPolicies:
    limits = policies.constraints
    return config_policies_pb2.ConfigPolicies(
        workspace_id=policies.workspace_number,
        invariant_config=to_value(policies.invariants),
        constraints=config_policies_pb2.ConfigConstraints(
            max_slots=limits.max_slots, priority_limit=limits.priority_limit
        ),
        update_time=timestamp(policies.updated_at or None),
    )
