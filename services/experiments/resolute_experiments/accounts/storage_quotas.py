"""Quotas of checkpoint storage: the bytes that a workspace uses and may use."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import checkpoints_service_pb2
from resolute.contracts.sizes import human_size
from resolute.errors import QuotaError
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.clients import Clients
from resolute_serving.database.engine import Database

_DEADLINE = 60.0
"""Seconds: files are counted one by one, a million in about four."""


class StorageQuota:
    """Checks quotas with the usage from the checkpoints service, which it calls only if there is a bound.

    Args:
        database: This service's database, which has the bounds.
        clients: The other services.
    """

    def __init__(self, database: Database, clients: Clients) -> None:
        self._database = database
        self._clients = clients

    async def used(self, workspace_id: int) -> int:
        """Returns the bytes of a workspace's checkpoints.

        Raises:
            UnavailableError: The checkpoints service does not answer.
        """
        request = checkpoints_service_pb2.GetStorageUsageRequest(workspace_id=workspace_id)
        return (await self._clients.checkpoints.GetStorageUsage(request, timeout=_DEADLINE)).bytes

    async def admit(self, workspace: str) -> None:
        """Lets an experiment come to a workspace whose checkpoints leave room.

        Raises:
            QuotaError: They take all that they may.
            UnavailableError: The checkpoints service does not answer.
        """
        record = await self._database.read(lambda c: workspaces.find(c, workspace))
        if record is None or not record.quota.storage_bytes:
            return
        used, bound = await self.used(record.number), record.quota.storage_bytes
        if used >= bound:
            raise QuotaError(
                f"the checkpoints of workspace {workspace!r} take {human_size(used)}, and may take "
                f"{human_size(bound)}; delete some with `resolute checkpoint gc` or `experiment delete`, "
                f"or ask an admin to raise the quota"
            )
