"""Records media: every ``log_*`` of a training script calls this."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.spool.format import MEDIA_SUFFIX, Media, encode_media
from resolute.errors import InvalidArgumentError, QuotaError
from resolute.spool.omissions import Omissions
from resolute.spool.segment import SEGMENT_BYTES, SpoolWriter


class MediaWriter(SpoolWriter):
    """Appends media to a spool. Media that do not fit are left out, so that training never waits for them.

    Args:
        directory: Directory of the spools; it must exist.
        name: Prefix of the source's name, such as ``rank0``.
        limit: Most bytes that may wait for the service.
        omissions: Receives media that cannot be recorded.
        segment_bytes: Size in bytes at which the next file begins.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str,
        limit: int,
        omissions: Omissions,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._limit = limit
        self._omissions = omissions
        super().__init__(directory, name=name, suffix=MEDIA_SUFFIX, segment_bytes=segment_bytes)

    def log(self, media: Media) -> None:
        """Appends one object; once this returns, a crash of the process does not lose it.

        Raises:
            ForkedProcessError: The writer belongs to the parent process.
        """
        self.check_process()
        for segment in self.segments[:-1]:
            if not segment.unacknowledged:
                self.forget(segment)
        if self.unacknowledged + len(media.content) > self._limit:
            message = f"{media.kind} {media.name!r}: more than {self._limit} bytes of media have not arrived"
            self._omissions.leave_out("media while too many have not arrived", QuotaError(message))
            return
        try:
            self.append(encode_media(media))
        except (InvalidArgumentError, QuotaError) as failure:
            self._omissions.leave_out("media that cannot be written", failure)
