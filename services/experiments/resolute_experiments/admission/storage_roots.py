"""Refuses configs whose checkpoints could not be stored. It asks the checkpoints service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from resolute.api.checkpoints.v1 import checkpoints_service_pb2, storage_pb2
from resolute.contracts.documents.refusals import refused_config
from resolute.errors import ResoluteError, Violation
from resolute_experiments.accounts.store import users
from resolute_experiments.clients import Clients
from resolute_experiments.specs.storage import storage
from resolute_serving.database.engine import Database

_PATH = "checkpoint_storage"
_log = structlog.get_logger(__name__)


class StorageRoots:
    """Asks the checkpoints service whether a config may name its storage.

    The only user of a cluster on one machine may name any directory. If others use the cluster, the services
    act for them with permissions that these users do not have. So their configs may name only directories
    below the cluster's own or below one that the operator lists.

    During an outage of that service a config is accepted if it names the cluster's own directory or a bucket:
    submissions need no other service, and a checkpoint outside of the roots is refused when it begins.

    Args:
        database: This service's database, which has the users.
        clients: The other services.
        shared: Whether other machines reach the cluster.
        default: The default ``checkpoint_storage`` of configs.
    """

    def __init__(
        self, database: Database, clients: Clients, *, shared: bool, default: Mapping[str, Any]
    ) -> None:
        self._database = database
        self._clients = clients
        self._shared = shared
        self._default = str(default.get("host_path") or "")

    async def require(self, config: Mapping[str, Any], *, by_operator: bool = False) -> None:
        """Makes sure that the checkpoints of a config may be stored where it says.

        Args:
            config: The whole checked config, defaults filled in.
            by_operator: Whether the operator takes it over from another cluster.

        Raises:
            InvalidConfigError: They may not; the error names the roots and the setting that lists them.
            UnavailableError: The service must be asked, and does not answer.
        """
        wanted = storage(config)
        below_roots = not by_operator and self._is_elsewhere(wanted) and await self._has_others()
        request = checkpoints_service_pb2.AdmitStorageRequest(storage=wanted, below_roots=below_roots)
        try:
            answer = await self._clients.checkpoints.AdmitStorage(request)
        except ResoluteError as error:
            if below_roots:
                raise
            _log.info("the storage of a config was not checked", error=str(error))
            return
        if answer.refusal:
            raise refused_config(Violation(_PATH, answer.refusal))

    def _is_elsewhere(self, wanted: storage_pb2.Storage) -> bool:
        """Whether it is another directory than that of configs that name none."""
        return wanted.HasField("directory") and wanted.directory.path != self._default

    async def _has_others(self) -> bool:
        return self._shared or await self._database.read(users.several)
