"""Handlers of ``ModelsService``."""

from __future__ import annotations

from typing import Any

from resolute.api.checkpoints.v1 import models_service_pb2 as messages
from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceServicer
from resolute_checkpoints.registry.imports import Imports
from resolute_checkpoints.registry.models import Models
from resolute_checkpoints.servicers import checkpoint_messages
from resolute_checkpoints.servicers import model_messages as convert
from resolute_checkpoints.servicers.import_messages import to_imported_model


class ModelsServicer(ModelsServiceServicer):
    """Serves ``ModelsService``.

    Args:
        models: The models of the registry.
        imports: Imports models of other clusters.
    """

    def __init__(self, models: Models, imports: Imports) -> None:
        self._models = models
        self._imports = imports

    async def CreateModel(
        self, request: messages.CreateModelRequest, context: Any
    ) -> messages.CreateModelResponse:
        """Creates a model."""
        model = await self._models.create(convert.to_new_model(request.model), request)
        return messages.CreateModelResponse(model=convert.from_model(model))

    async def ImportModel(
        self, request: messages.ImportModelRequest, context: Any
    ) -> messages.ImportModelResponse:
        """Takes over a model of another cluster."""
        model = await self._imports.model(to_imported_model(request))
        return messages.ImportModelResponse(model=convert.from_model(model))

    async def GetModel(self, request: messages.GetModelRequest, context: Any) -> messages.GetModelResponse:
        """Returns a model."""
        model = await self._models.get(convert.to_key(request.key))
        return messages.GetModelResponse(model=convert.from_model(model))

    async def ListModels(
        self, request: messages.ListModelsRequest, context: Any
    ) -> messages.ListModelsResponse:
        """Lists models."""
        models, next_page_token = await self._models.page(convert.to_filter(request), request)
        return messages.ListModelsResponse(
            models=[convert.from_model(model) for model in models], next_page_token=next_page_token
        )

    async def UpdateModel(
        self, request: messages.UpdateModelRequest, context: Any
    ) -> messages.UpdateModelResponse:
        """Updates a model."""
        model = await self._models.update(convert.to_key(request.key), convert.to_model_changes(request))
        return messages.UpdateModelResponse(model=convert.from_model(model))

    async def DeleteModel(
        self, request: messages.DeleteModelRequest, context: Any
    ) -> messages.DeleteModelResponse:
        """Deletes a model."""
        await self._models.delete(convert.to_key(request.key))
        return messages.DeleteModelResponse()

    async def CreateVersion(
        self, request: messages.CreateVersionRequest, context: Any
    ) -> messages.CreateVersionResponse:
        """Makes a checkpoint a version."""
        version = await self._models.create_version(
            convert.to_key(request.key), convert.to_new_version(request), request
        )
        return messages.CreateVersionResponse(version=convert.from_version(version))

    async def GetVersion(
        self, request: messages.GetVersionRequest, context: Any
    ) -> messages.GetVersionResponse:
        """Returns a version."""
        number = request.version_number if request.HasField("version_number") else None
        version = await self._models.version(convert.to_key(request.key), number)
        return messages.GetVersionResponse(version=convert.from_version(version))

    async def ListVersions(
        self, request: messages.ListVersionsRequest, context: Any
    ) -> messages.ListVersionsResponse:
        """Lists versions."""
        labels = request.required_labels
        checkpoint_messages.require_count(labels, field="required_labels", limit=convert.MAX_FILTER_ENTRIES)
        versions, next_page_token = await self._models.versions(
            convert.to_key(request.key), list(labels), request
        )
        return messages.ListVersionsResponse(
            versions=[convert.from_version(version) for version in versions], next_page_token=next_page_token
        )

    async def UpdateVersion(
        self, request: messages.UpdateVersionRequest, context: Any
    ) -> messages.UpdateVersionResponse:
        """Updates a version."""
        version = await self._models.update_version(
            convert.to_key(request.key), request.version_number, convert.to_version_changes(request)
        )
        return messages.UpdateVersionResponse(version=convert.from_version(version))

    async def DeleteVersion(
        self, request: messages.DeleteVersionRequest, context: Any
    ) -> messages.DeleteVersionResponse:
        """Deletes a version."""
        await self._models.delete_version(convert.to_key(request.key), request.version_number)
        return messages.DeleteVersionResponse()
