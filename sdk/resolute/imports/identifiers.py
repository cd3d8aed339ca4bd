"""The identifiers on this cluster of objects of a Determined cluster."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

_SCHEME = "determined"


@dataclass(frozen=True)
class OldName:
    """The kind and number of an object of a Determined cluster."""

    cluster_id: str
    """UUID of that cluster."""
    kind: str
    """``experiment``, ``trial`` or ``model``."""
    number: int

    def __str__(self) -> str:
        """The external identifier that it has here."""
        return f"{_SCHEME}/{self.cluster_id}/{self.kind}/{self.number}"

    @property
    def id(self) -> str:
        """The UUID that it has here, as ``ImportsService`` makes it."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, str(self)))

    @classmethod
    def parse(cls, external_id: str) -> OldName | None:
        """Reads an external identifier; None if it is not one of a Determined cluster."""
        scheme, _, rest = external_id.partition("/")
        parts = rest.split("/")
        if scheme != _SCHEME or len(parts) != 3 or not parts[2].isdecimal():
            return None
        return cls(parts[0], parts[1], int(parts[2]))
