"""The connection data that the supervisor passes to a trial's processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from resolute.errors import DataLossError


@dataclass(frozen=True, slots=True)
class Connection:
    """The part of ``cluster.json`` under the key ``resolute``."""

    address: str
    """``host:port`` of the services."""
    experiment_id: str
    """UUID of the experiment."""
    trial_id: str
    """UUID of the trial."""
    run: int
    """Run, from 1."""
    token_path: str
    """File that holds the token of the moment."""
    tls: bool = False
    """Whether by TLS."""
    storage: Mapping[str, Any] = field(default_factory=dict)
    """Where the experiment's checkpoints lie, as the JSON form of ``checkpoints.v1.Storage``."""
    searcher_metric: str = ""
    """Metric that the experiment decides by."""
    smaller_is_better: bool = True
    """Whether smaller values of it are better."""
    time_driven: bool = False
    """Whether validation reports drive the search, so that there are no operations."""
    trace_id: str = ""
    """Follows the run through every service."""
    unmanaged: bool = False
    """Whether the run continues outside of the cluster, so that no search drives it."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Connection:
        """Reads what ``to_json`` wrote, ignoring keys of newer releases.

        Raises:
            DataLossError: A key is missing.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        try:
            return cls(**{key: value for key, value in content.items() if key in known})
        except TypeError as failure:
            raise DataLossError(
                f"the cluster info does not say how to reach the services: {failure}"
            ) from failure

    def to_json(self) -> dict[str, Any]:
        """Returns plain data for JSON."""
        return dataclasses.asdict(self)
