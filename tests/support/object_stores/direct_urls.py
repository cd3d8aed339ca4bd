"""Presigned URLs for the SDK's store straight from the service's store, without the service between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from support.object_stores.servers import ObjectServer

from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.stores.presigned import UploadTarget
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import File


class DirectUrls:
    """Signs as the service does.

    Args:
        server: The server.
        bucket: Its bucket.
    """

    def __init__(self, server: ObjectServer, bucket: str) -> None:
        self.store = StoreFactory(buckets=server.settings()).open(server.storage(bucket))
        # The service has looked for the bucket once, before any of its stores goes down.
        self.store.upload_urls("none", [])
        self._server = server
        self._bucket = bucket
        self.expired = 0
        """How many of the next answers hold URLs that ran out an hour ago."""

    def uploads(self, checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, UploadTarget]:
        if self._runs_out():
            return {path: UploadTarget(path, (self._expired("PUT", checkpoint_id, path),)) for path in sizes}
        found = self.store.upload_urls(checkpoint_id, [File(path, size) for path, size in sizes.items()])
        return {
            each.path: UploadTarget(each.path, each.urls, each.part_size, each.upload_id, each.headers)
            for each in found
        }

    def downloads(self, checkpoint_id: str, paths: Sequence[str]) -> Mapping[str, str]:
        if self._runs_out():
            return {path: self._expired("GET", checkpoint_id, path) for path in paths}
        return dict(zip(paths, self.store.download_urls(checkpoint_id, paths), strict=True))

    def sizes(self, checkpoint_id: str) -> dict[str, int]:
        prefix = f"{checkpoint_id}/"
        found = self._server.objects(self._bucket)
        return {key.removeprefix(prefix): size for key, size in found.items() if key.startswith(prefix)}

    def delete(self, checkpoint_id: str) -> None:
        self.store.remove(checkpoint_id, committed=True)

    def finish(self, checkpoint_id: str, entries: Sequence[FileEntry]) -> None:
        """Puts the parts together, as a commit does."""
        uploads = [
            FinishedUpload(each.path, each.upload_id, each.etags) for each in entries if each.upload_id
        ]
        self.store.finish_uploads(checkpoint_id, uploads)

    def damage(self, checkpoint_id: str, path: str, data: bytes) -> None:
        """Puts other bytes in the place of a file."""
        self._server.put(self._bucket, f"{checkpoint_id}/{path}", data)

    def _runs_out(self) -> bool:
        self.expired = max(0, self.expired - 1) if (was := self.expired) else 0
        return was > 0

    def _expired(self, method: str, checkpoint_id: str, path: str) -> str:
        return self._server.expired_url(method, self._bucket, f"{checkpoint_id}/{path}")
