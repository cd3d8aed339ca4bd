"""Images, tables and so on that trials logged."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.checkpoints.v1 import media_pb2, media_service_pb2, media_service_pb2_grpc
from resolute.client.connection.paging import MAX_PAGE_SIZE, all_items
from resolute.client.connection.session import Session
from resolute.client.schema.records import MediaRecord
from resolute.contracts.messages import enum_number, from_message
from resolute.contracts.spool.media_formats import MediaKind


class MediaLog:
    """Calls of the media service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(media_service_pb2_grpc.MediaServiceStub)

    def list(
        self, trial_uuid: str, *, name: str = "", kind: MediaKind | None = None
    ) -> Iterator[MediaRecord]:
        """Yields what a trial logged, by steps.

        Args:
            trial_uuid: UUID of the trial.
            name: Only media of this name; empty for all.
            kind: Only media of this kind; None for all.
        """
        number = 0 if kind is None else enum_number(media_pb2.MediaKind.DESCRIPTOR, kind.name)
        request = media_service_pb2.ListMediaRequest(
            trial_id=trial_uuid, name=name, kind=media_pb2.MediaKind.ValueType(number)
        )
        pages = all_items(self._stub.ListMedia, request, "media", page_size=MAX_PAGE_SIZE)
        return (from_message(MediaRecord, message, trial_uuid=message.trial_id) for message in pages)

    def read(self, trial_uuid: str, media_id: int) -> bytes:
        """Returns the content of one object.

        Raises:
            DataLossError: It is gone from its storage.
            NotFoundError: The trial has logged no such object.
        """
        request = media_service_pb2.GetMediaRequest(trial_id=trial_uuid, media_id=media_id)
        content: bytes = self._stub.GetMedia(request).media.content
        return content

    def dropped(self, trial_uuid: str) -> str:
        """Says what was dropped of a trial's media because of a limit; empty if nothing was."""
        request = media_service_pb2.ListMediaNamesRequest(trial_ids=[trial_uuid])
        return "".join(dropped.explanation for dropped in self._stub.ListMediaNames(request).dropped)
