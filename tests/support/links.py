"""Presigned URLs for the SDK's store straight from the service's store, without the service between them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from support.s3 import REGION, S3Server

from resolute.core.checkpoint.bucket import Target
from resolute.core.checkpoint.manifest import FileEntry
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.buckets import BucketSettings
from resolute_checkpoints.blobs.stores import Stores
from resolute_checkpoints.checkpoint import BucketStorage, File


class DirectLinks:
    """Signs as the service does.

    Args:
        server: The server.
        bucket: Its bucket.
    """

    def __init__(self, server: S3Server, bucket: str) -> None:
        settings = BucketSettings(access_key=server.access_key, secret_key=server.secret_key, region=REGION)
        self.store = Stores(buckets=settings).open(BucketStorage(bucket, "", server.endpoint_url))
        # The service has looked for the bucket once, before any of its stores goes down.
        self.store.upload_urls("none", [])
        self._client = server.client()
        self._bucket = bucket
        self.expired = 0
        """How many of the next answers hold URLs that ran out an hour ago."""

    def uploads(self, checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, Target]:
        if self._runs_out():
            return {path: Target(path, (self._expired("PUT", checkpoint_id, path),)) for path in sizes}
        found = self.store.upload_urls(checkpoint_id, [File(path, size) for path, size in sizes.items()])
        return {each.path: Target(each.path, each.urls, each.part_size, each.upload_id) for each in found}

    def downloads(self, checkpoint_id: str, paths: Sequence[str]) -> Mapping[str, str]:
        if self._runs_out():
            return {path: self._expired("GET", checkpoint_id, path) for path in paths}
        return dict(zip(paths, self.store.download_urls(checkpoint_id, paths), strict=True))

    def sizes(self, checkpoint_id: str) -> dict[str, int]:
        found = self._client.list_objects(self._bucket, prefix=f"{checkpoint_id}/", recursive=True)
        return {(item.object_name or "").removeprefix(f"{checkpoint_id}/"): item.size or 0 for item in found}

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
        self._client.put_object(self._bucket, f"{checkpoint_id}/{path}", io.BytesIO(data), len(data))

    def _runs_out(self) -> bool:
        self.expired = max(0, self.expired - 1) if (was := self.expired) else 0
        return was > 0

    def _expired(self, method: str, checkpoint_id: str, path: str) -> str:
        long_ago = datetime.now(timezone.utc) - timedelta(hours=2)
        return self._client.get_presigned_url(
            method,
            self._bucket,
            f"{checkpoint_id}/{path}",
            expires=timedelta(hours=1),
            request_date=long_ago,
        )
