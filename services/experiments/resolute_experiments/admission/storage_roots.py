"""Refuses configs whose checkpoints could not be stored: of that only the checkpoints service knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from resolute.api.checkpoints.v1 import checkpoints_service_pb2
from resolute.contracts.documents.refusals import refused_config
from resolute.errors import ResoluteError, Violation
from resolute_experiments.clients import Clients
from resolute_experiments.specs.storage import storage

_PATH = "checkpoint_storage"
_log = structlog.get_logger(__name__)


class StorageRoots:
    """Asks the checkpoints service whether a config may name its storage.

    A config passes while that service does not answer: submissions need no other service, and a checkpoint
    outside of the roots is refused in any case when it begins.

    Args:
        clients: The other services.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def require(self, config: Mapping[str, Any]) -> None:
        """Makes sure that the checkpoints of a config may be stored where it says.

        Args:
            config: The whole checked config, defaults filled in.

        Raises:
            InvalidConfigError: They may not; the error names the roots and the setting that lists them.
        """
        request = checkpoints_service_pb2.AdmitStorageRequest(storage=storage(config))
        try:
            answer = await self._clients.checkpoints.AdmitStorage(request)
        except ResoluteError as error:
            _log.info("the storage of a config was not checked", error=str(error))
            return
        if answer.refusal:
            raise refused_config(Violation(_PATH, answer.refusal))
