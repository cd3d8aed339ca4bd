"""A trial that runs without a cluster, in a directory with its info, code and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute.errors import DataLossError


@dataclass(frozen=True, slots=True)
class LocalTask:
    """The part of ``cluster.json`` under the key ``local``, for a trial that no cluster runs."""

    checkpoints: str
    """Directory of the checkpoints, relative to that of the info files."""
    lengths: tuple[int, ...] = ()
    """Absolute lengths that the search asked for, in order; empty where validation reports drove it."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LocalTask:
        """Reads what ``to_json`` wrote.

        Raises:
            DataLossError: A key is missing, or has another type.
        """
        try:
            lengths = tuple(int(length) for length in content["lengths"])
            return cls(checkpoints=str(content["checkpoints"]), lengths=lengths)
        except (KeyError, TypeError, ValueError) as failure:
            raise DataLossError(
                f"the key local of cluster.json is damaged ({failure!r}); run `resolute reproduce` again"
            ) from failure

    def to_json(self) -> dict[str, Any]:
        """Returns plain data for JSON."""
        return {"checkpoints": self.checkpoints, "lengths": list(self.lengths)}
