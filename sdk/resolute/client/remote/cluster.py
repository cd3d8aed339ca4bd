"""The cluster as a whole: its slots, its templates, its users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from resolute.api.experiments.v1 import (
    access_service_pb2,
    access_service_pb2_grpc,
    cluster_service_pb2,
    cluster_service_pb2_grpc,
)
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import ClusterRecord, TemplateRecord
from resolute.contracts.messages import from_message
from resolute.contracts.values import to_mapping

_pb = cluster_service_pb2


class Cluster:
    """Calls of the cluster service, and of the access service about the caller.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(cluster_service_pb2_grpc.ClusterServiceStub)
        self._access = session.stub(access_service_pb2_grpc.AccessServiceStub)

    def get(self) -> ClusterRecord:
        """Returns identity, version and slots."""
        return convert.cluster(self._stub.GetCluster(_pb.GetClusterRequest()))

    def disable_slots(self, slot_ids: Sequence[int], *, resource_pool: str = "", drain: bool = False) -> None:
        """Lets no run start on slots until they are enabled again.

        Args:
            slot_ids: Numbers of the slots in their pool.
            resource_pool: Their pool; empty for the default one.
            drain: Whether runs that hold them go on to their end. Otherwise they checkpoint and exit, and
                their trials wait for other slots.

        Raises:
            InvalidArgumentError: There is no such slot, or the engine of the pool gives out its slots by
                itself; the message says by which commands of its own.
        """
        request = _pb.DisableSlotsRequest(slot_ids=slot_ids, drain=drain, resource_pool=resource_pool)
        self._stub.DisableSlots(request)

    def enable_slots(self, slot_ids: Sequence[int], *, resource_pool: str = "") -> None:
        """Lets runs start on slots again.

        Args:
            slot_ids: Numbers of the slots in their pool.
            resource_pool: Their pool; empty for the default one.

        Raises:
            InvalidArgumentError: As for ``disable_slots``.
        """
        self._stub.EnableSlots(_pb.EnableSlotsRequest(slot_ids=slot_ids, resource_pool=resource_pool))

    def server_config(self) -> dict[str, Any]:
        """Returns the settings that the server was started with, by name."""
        return to_mapping(self._stub.GetServerConfig(_pb.GetServerConfigRequest()).config)

    def server_log(self, *, tail: int = 0, follow: bool = False) -> Iterator[str]:
        """Yields the last lines that the server logged.

        Args:
            tail: How many at most; zero for all that are kept.
            follow: Whether new lines are yielded as they are logged, for as long as the server runs.
        """
        request = _pb.FollowServerLogRequest(tail=tail, follow=follow)
        for response in self._stub.FollowServerLog(request):
            yield from response.lines

    def current_user(self) -> str:
        """Returns the name of the user of the session's token."""
        response = self._access.GetCurrentUser(access_service_pb2.GetCurrentUserRequest())
        return response.user.name or f"service:{response.service_name}"

    def set_template(self, name: str, config: str) -> None:
        """Writes a template, part of a config in YAML; replaces one of the same name."""
        self._stub.SetTemplate(_pb.SetTemplateRequest(name=name, config_yaml=config))

    def get_template(self, name: str) -> TemplateRecord:
        """Returns a template.

        Raises:
            NotFoundError: There is none.
        """
        template = self._stub.GetTemplate(_pb.GetTemplateRequest(name=name)).template
        return from_message(TemplateRecord, template)

    def list_templates(self) -> Iterator[TemplateRecord]:
        """Yields all templates by name."""
        for message in all_items(self._stub.ListTemplates, _pb.ListTemplatesRequest(), "templates"):
            yield from_message(TemplateRecord, message)

    def delete_template(self, name: str) -> None:
        """Removes a template."""
        self._stub.DeleteTemplate(_pb.DeleteTemplateRequest(name=name))
