"""Handlers of ``ModelsService``."""

from __future__ import annotations

from typing import Any

from resolute.api.checkpoints.v1 import models_service_pb2 as messages
from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceServicer
from resolute_checkpoints.domain.model import DEFAULT_WORKSPACE, ModelQuery, check_name
from resolute_checkpoints.registry.models import Models
from resolute_checkpoints.servicers import model_messages as convert
from resolute_checkpoints.servicers.identifiers import parse_uuid
from resolute_serving import pagination


class ModelsServicer(ModelsServiceServicer):
    """Serves ``ModelsService``.

    Args:
        models: Keeps them.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    async def CreateModel(
        self, request: messages.CreateModelRequest, context: Any
    ) -> messages.CreateModelResponse:
        """Creates a model."""
        model = await self._models.create(
            parse_uuid(request.model_id, field="model_id"),
            check_name(request.name),
            request.workspace or DEFAULT_WORKSPACE,
            convert.to_description(request.description),
        )
        return messages.CreateModelResponse(model=convert.from_model(model))

    async def GetModel(self, request: messages.GetModelRequest, context: Any) -> messages.GetModelResponse:
        """Gives a model."""
        model = await self._models.get(convert.to_key(request.model))
        return messages.GetModelResponse(model=convert.from_model(model))

    async def ListModels(
        self, request: messages.ListModelsRequest, context: Any
    ) -> messages.ListModelsResponse:
        """Lists models."""
        query = ModelQuery(
            name=request.name,
            description=request.description,
            labels=tuple(request.labels),
            workspaces=tuple(request.workspaces),
            include_archived=request.include_archived,
        )
        size = pagination.page_size(request.page_size)
        after = str(pagination.decode_token(request) or "")
        found = await self._models.page(query, after=after, size=size + 1)
        return messages.ListModelsResponse(
            models=[convert.from_model(model) for model in found[:size]],
            next_page_token=pagination.encode_token(request, found[size - 1].name)
            if len(found) > size
            else "",
        )

    async def UpdateModel(
        self, request: messages.UpdateModelRequest, context: Any
    ) -> messages.UpdateModelResponse:
        """Changes what is said of a model."""
        model = await self._models.update(
            convert.to_key(request.model),
            convert.to_model_description(request.description),
            workspace=request.workspace if request.HasField("workspace") else None,
            archived=request.archived if request.HasField("archived") else None,
        )
        return messages.UpdateModelResponse(model=convert.from_model(model))

    async def DeleteModel(
        self, request: messages.DeleteModelRequest, context: Any
    ) -> messages.DeleteModelResponse:
        """Removes a model."""
        await self._models.delete(convert.to_key(request.model))
        return messages.DeleteModelResponse()

    async def RegisterVersion(
        self, request: messages.RegisterVersionRequest, context: Any
    ) -> messages.RegisterVersionResponse:
        """Registers a checkpoint."""
        version = await self._models.register(
            convert.to_key(request.model),
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            convert.to_description(request.description),
            request_id=parse_uuid(request.request_id, field="request_id"),
        )
        return messages.RegisterVersionResponse(version=convert.from_version(version))

    async def GetVersion(
        self, request: messages.GetVersionRequest, context: Any
    ) -> messages.GetVersionResponse:
        """Gives a version."""
        version = await self._models.version(convert.to_key(request.model), request.version)
        return messages.GetVersionResponse(version=convert.from_version(version))

    async def ListVersions(
        self, request: messages.ListVersionsRequest, context: Any
    ) -> messages.ListVersionsResponse:
        """Lists versions."""
        size = pagination.page_size(request.page_size)
        before = pagination.decode_token(request)
        found = await self._models.versions(
            convert.to_key(request.model),
            before=before if isinstance(before, int) else None,
            size=size + 1,
        )
        more = len(found) > size
        return messages.ListVersionsResponse(
            versions=[convert.from_version(version) for version in found[:size]],
            next_page_token=pagination.encode_token(request, found[size - 1].version) if more else "",
        )

    async def UpdateVersion(
        self, request: messages.UpdateVersionRequest, context: Any
    ) -> messages.UpdateVersionResponse:
        """Changes what is said of a version."""
        version = await self._models.update_version(
            convert.to_key(request.model), request.version, convert.to_description(request.description)
        )
        return messages.UpdateVersionResponse(version=convert.from_version(version))

    async def DeleteVersion(
        self, request: messages.DeleteVersionRequest, context: Any
    ) -> messages.DeleteVersionResponse:
        """Removes a version."""
        await self._models.delete_version(convert.to_key(request.model), request.version)
        return messages.DeleteVersionResponse()
