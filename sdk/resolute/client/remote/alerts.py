"""Alerts: the rules that say which events notify which endpoints, and their deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolute.api.experiments.v1 import alerts_service_pb2 as _pb
from resolute.api.experiments.v1 import alerts_service_pb2_grpc
from resolute.client.connection.session import Session
from resolute.client.schema.records import AlertDeliveryRecord
from resolute.contracts.messages import from_message

if TYPE_CHECKING:
    from resolute.client.remote.accounts.workspaces import Workspaces


class Alerts:
    """Calls of the alerts service. A workspace is named by name or number; None is the cluster.

    Args:
        session: The connection.
        workspaces: Calls that look up workspaces by name.
    """

    def __init__(self, session: Session, workspaces: Workspaces) -> None:
        self._stub = session.stub(alerts_service_pb2_grpc.AlertsServiceStub)
        self._workspaces = workspaces

    def set(self, document: str, *, workspace: str | int | None = None) -> str:
        """Sets alerts in place of all that were there.

        Args:
            document: YAML or JSON: a map of ``endpoints`` and ``rules``; empty for none.
            workspace: Whose they are.

        Returns:
            The alerts as they are now, as YAML without secrets.

        Raises:
            InvalidArgumentError: Something in the document is wrong; the error lists every fault.
            PermissionDeniedError: The caller is no admin there.
        """
        request = _pb.SetAlertsRequest(workspace_id=self._workspaces.id_of(workspace), alerts_yaml=document)
        return self._stub.SetAlerts(request).alerts_yaml

    def get(self, *, workspace: str | int | None = None) -> str:
        """Returns alerts as YAML without secrets; empty where none are set."""
        return self._stub.GetAlerts(
            _pb.GetAlertsRequest(workspace_id=self._workspaces.id_of(workspace))
        ).alerts_yaml

    def test(self, endpoint: str, *, workspace: str | int | None = None) -> None:
        """Tells one endpoint now.

        Raises:
            FailedPreconditionError: It may not be reached.
            NotFoundError: There is no such endpoint.
            UnavailableError: It did not take the alert.
        """
        request = _pb.TestEndpointRequest(workspace_id=self._workspaces.id_of(workspace), endpoint=endpoint)
        self._stub.TestEndpoint(request)

    def deliveries(self, *, workspace: str | int | None = None) -> list[AlertDeliveryRecord]:
        """Returns the latest deliveries, newest first."""
        request = _pb.ListDeliveriesRequest(workspace_id=self._workspaces.id_of(workspace))
        found = self._stub.ListDeliveries(request).deliveries
        return [from_message(AlertDeliveryRecord, delivery) for delivery in found]
