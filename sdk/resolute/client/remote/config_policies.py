"""Policies for configs, which admins set for all experiments or for those of one workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolute.api.experiments.v1 import config_policies_pb2, config_policies_service_pb2_grpc
from resolute.api.experiments.v1 import config_policies_service_pb2 as _pb
from resolute.client.connection.session import Session
from resolute.client.schema.records import ConfigPoliciesRecord
from resolute.contracts.messages import from_message
from resolute.contracts.values import to_mapping

if TYPE_CHECKING:
    from resolute.client.remote.accounts.workspaces import Workspaces


class ConfigPolicies:
    """Calls of the config policies service. A workspace is named by name or number; None is the cluster.

    Args:
        session: The connection.
        workspaces: Calls that look up workspaces by name.
    """

    def __init__(self, session: Session, workspaces: Workspaces) -> None:
        self._stub = session.stub(config_policies_service_pb2_grpc.ConfigPoliciesServiceStub)
        self._workspaces = workspaces

    def set(
        self, document: str, *, workspace: str | int | None = None
    ) -> tuple[ConfigPoliciesRecord, list[str]]:
        """Sets policies in place of all that were there.

        Args:
            document: YAML or JSON: a map of ``invariant_config`` and ``constraints``.
            workspace: Where they hold.

        Returns:
            The policies as they are now, and what in them has no effect.

        Raises:
            InvalidArgumentError: Something in the document is wrong; the error lists every fault.
            PermissionDeniedError: The caller is no admin there.
        """
        request = _pb.SetConfigPoliciesRequest(
            workspace_id=self._workspaces.id_of(workspace), policies_yaml=document
        )
        response = self._stub.SetConfigPolicies(request)
        return _record(response.policies), list(response.warnings)

    def get(self, *, workspace: str | int | None = None) -> ConfigPoliciesRecord:
        """Returns policies; where none are set they are empty."""
        request = _pb.GetConfigPoliciesRequest(workspace_id=self._workspaces.id_of(workspace))
        return _record(self._stub.GetConfigPolicies(request).policies)

    def delete(self, *, workspace: str | int | None = None) -> None:
        """Removes policies.

        Raises:
            PermissionDeniedError: The caller is no admin there.
        """
        self._stub.DeleteConfigPolicies(
            _pb.DeleteConfigPoliciesRequest(workspace_id=self._workspaces.id_of(workspace))
        )


def _record(message: config_policies_pb2.ConfigPolicies) -> ConfigPoliciesRecord:
    return from_message(
        ConfigPoliciesRecord,
        message.constraints,
        invariant_config=to_mapping(message.invariant_config),
    )
