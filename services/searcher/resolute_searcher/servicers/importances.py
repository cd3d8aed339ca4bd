"""The RPC that estimates how much hyperparameters matter."""

from __future__ import annotations

from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import canonical_uuid
from resolute_searcher.servicers.base import BaseCalls


class ImportanceCalls(BaseCalls):
    """Answers the call about importances."""

    async def GetImportances(
        self, request: service_pb.GetImportancesRequest, context: Any
    ) -> service_pb.GetImportancesResponse:
        """Estimates how much each hyperparameter matters for the metric."""
        return await self.importances.of(canonical_uuid(request.search_id, field="search_id"))
