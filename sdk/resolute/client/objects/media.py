"""One image, histogram, text, table, sound or figure of a trial."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from resolute.client.schema.records import MediaRecord
from resolute.client.services import Services
from resolute.contracts.spool.media_formats import JSON, MediaKind

_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "text/plain": ".txt",
    JSON: ".json",
}
_UNNAMED = "unnamed"
_LONGEST = 100
"""Bytes of a directory's name; the systems of files of most machines allow 255."""


class Media:
    """An image, histogram, text, table, sound or figure that a trial logged. Its content is read on demand.

    Args:
        services: The cluster.
        record: Its record on the cluster.
    """

    def __init__(self, services: Services, record: MediaRecord) -> None:
        self._services = services
        self._record = record

    def __repr__(self) -> str:
        return f"Media({self.kind.value} {self.name!r} at {self.steps_completed} steps)"

    @property
    def name(self) -> str:
        """Name under which it was logged."""
        return self._record.name

    @property
    def kind(self) -> MediaKind:
        """What it is."""
        return self._record.kind

    @property
    def steps_completed(self) -> int:
        """Steps completed when it was logged."""
        return self._record.steps_completed

    @property
    def run(self) -> int:
        """Run that logged it; a later one may have logged the same steps again."""
        return self._record.run

    @property
    def caption(self) -> str:
        """A line for people; empty for none."""
        return self._record.caption

    @property
    def content_type(self) -> str:
        """Media type of the content, such as ``image/png``."""
        return self._record.content_type

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return self._record.size

    def read(self) -> bytes:
        """Returns the content.

        Raises:
            DataLossError: It is gone from its storage.
        """
        return self._services.media.read(self._record.trial_uuid, self._record.media_id)

    def json(self) -> Any:
        """Returns the content of a histogram, a table or a figure of Plotly as plain data.

        Raises:
            ValueError: It is something else.
        """
        if self.content_type != JSON:
            raise ValueError(f"{self.name!r} is {self.content_type}, not JSON; use read()")
        return json.loads(self.read())

    def download(self, directory: str | os.PathLike[str]) -> Path:
        """Writes the content into a directory.

        Args:
            directory: The directory; it is made if it is missing.

        Returns:
            The file: in a directory of the name, called by its steps and its number.
        """
        # A script chose the name: what may lead elsewhere, or is no name of a file, is replaced.
        plain = "".join(c if c.isalnum() or c in "-_. " else "_" for c in self.name)
        short = plain.encode()[:_LONGEST].decode(errors="ignore").strip(". ")
        target = Path(directory) / (short or _UNNAMED)
        target.mkdir(parents=True, exist_ok=True)
        ending = _ENDINGS.get(self.content_type, ".bin")
        file = target / f"{self.steps_completed}-{self._record.media_id}{ending}"
        file.write_bytes(self.read())
        return file
