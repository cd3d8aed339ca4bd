"""Assembles the checkpoints service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import grpc

from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import (
    add_CheckpointsServiceServicer_to_server,
)
from resolute.api.checkpoints.v1.media_service_pb2_grpc import add_MediaServiceServicer_to_server
from resolute.api.checkpoints.v1.models_service_pb2_grpc import add_ModelsServiceServicer_to_server
from resolute_checkpoints.access_lookup import RegistryAccessLookup
from resolute_checkpoints.blobs.examination import Examiner
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.verification import Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.media.intake import Intake
from resolute_checkpoints.media.removal import Removal as MediaRemoval
from resolute_checkpoints.registry.checkpoints import Registry
from resolute_checkpoints.registry.downloads import Downloads
from resolute_checkpoints.registry.imports import Imports
from resolute_checkpoints.registry.models import Models
from resolute_checkpoints.registry.reuse import Reuse
from resolute_checkpoints.retention.collector import Collector
from resolute_checkpoints.retention.deletion import Deletions
from resolute_checkpoints.retention.enforcement import RetentionEnforcer
from resolute_checkpoints.retention.remover import Remover
from resolute_checkpoints.servicers.checkpoints import CheckpointsServicer
from resolute_checkpoints.servicers.media import MediaServicer
from resolute_checkpoints.servicers.models import ModelsServicer
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store.schema import KEYS
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment

_BLOB_THREADS = 8
_REMOVAL_THREADS = 4
_VERIFICATION_THREADS = 16
_MEDIA_THREADS = 4


class CheckpointsService:
    """The checkpoints service.

    Args:
        environment: The parameters of every service.
        settings: Settings of this service.
    """

    name = "checkpoints"
    """Short name."""
    grpc_names: Sequence[str] = (
        "resolute.api.checkpoints.v1.CheckpointsService",
        "resolute.api.checkpoints.v1.ModelsService",
        "resolute.api.checkpoints.v1.MediaService",
    )
    """Full names of its gRPC services."""

    def __init__(self, environment: Environment, *, settings: CheckpointSettings) -> None:
        clock = environment.clock
        roots = replace(
            settings.roots, own=environment.checkpoints_directory, private=environment.private_directory
        )
        stores = StoreFactory(roots=roots, buckets=settings.buckets, clock=clock)
        self._database = environment.open_database(self.name)
        self.access_lookup = RegistryAccessLookup(self._database, environment.access_lookup)
        self._workers = BlobWorkers(name="checkpoints-blobs", threads=_BLOB_THREADS)
        self._removal_workers = BlobWorkers(name="checkpoints-removal", threads=_REMOVAL_THREADS)
        self._verification_workers = BlobWorkers(name="checkpoints-verify", threads=_VERIFICATION_THREADS)
        self._media_workers = BlobWorkers(name="checkpoints-media", threads=_MEDIA_THREADS)
        remover = Remover(database=self._database, stores=stores, workers=self._removal_workers, clock=clock)
        self.collector = Collector(database=self._database, remover=remover, clock=clock, settings=settings)
        """Clears up in the background; tests make it pass at once."""
        self._key_sweeper = KEYS.sweeper(self._database, clock=clock)
        imports = Imports(database=self._database, stores=stores, workers=self._workers, clock=clock)
        contents = Contents(stores=stores, workers=self._media_workers, cluster_id=environment.cluster_id)
        intake = Intake(self._database, contents, limits=settings.media, clock=clock)
        self._media = MediaServicer(self._database, intake=intake, contents=contents)
        self._models = ModelsServicer(Models(database=self._database, clock=clock), imports)
        self._servicer = CheckpointsServicer(
            database=self._database,
            registry=Registry(
                database=self._database,
                stores=stores,
                workers=self._workers,
                verifier=Verifier(self._verification_workers),
                remover=remover,
                clock=clock,
                cluster_id=environment.cluster_id,
            ),
            reuse=Reuse(database=self._database, stores=stores, workers=self._workers),
            downloads=Downloads(
                database=self._database,
                stores=stores,
                workers=self._workers,
                clock=clock,
                url_seconds=settings.buckets.url_seconds,
            ),
            deletions=Deletions(
                database=self._database,
                remover=remover,
                clock=clock,
                cluster_id=environment.cluster_id,
                media=MediaRemoval(self._database, contents, clock=clock),
            ),
            retention=RetentionEnforcer(
                database=self._database, clock=clock, wake=self.collector.passes.wake
            ),
            examiner=Examiner(stores=stores, workers=self._workers, clock=clock),
            imports=imports,
        )

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server that has not started."""
        add_CheckpointsServiceServicer_to_server(self._servicer, server)
        add_ModelsServiceServicer_to_server(self._models, server)
        add_MediaServiceServicer_to_server(self._media, server)

    async def gauges(self) -> Sequence[Gauge]:
        """Returns the number of waiting writes."""
        return await self._database.gauges()

    async def start(self) -> None:
        """Starts the background tasks."""
        self.collector.passes.start()
        self._key_sweeper.start()

    async def stop(self) -> None:
        """Stops the background tasks, then closes the database."""
        await self._key_sweeper.stop()
        await self.collector.passes.stop()
        await asyncio.to_thread(self._removal_workers.close)
        await asyncio.to_thread(self._verification_workers.close)
        await asyncio.to_thread(self._media_workers.close)
        await asyncio.to_thread(self._workers.close)
        await asyncio.to_thread(self._database.close)
