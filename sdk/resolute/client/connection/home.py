"""The embedded cluster's home directory, which holds its address and the operator's token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from resolute.errors import FailedPreconditionError

HOME_VARIABLE = "RESOLUTE_HOME"
"""Environment variable that names the home directory."""
DEFAULT_HOME = "~/.resolute"
"""Home directory when the variable is not set."""


@dataclass(frozen=True)
class LocalCluster:
    """The embedded cluster of a home, as its ``endpoint.json`` describes it."""

    address: str
    """``host:port`` of its gRPC port."""
    token_path: Path
    """File with the operator's token."""
    cluster_id: str
    """UUID of the cluster."""
    pid: int
    """Process that serves it; it may have died without removing the file."""
    http_url: str = ""
    """URL of its HTTP gateway; empty if it has none."""
    has_page: bool = True
    """Whether browsers get a page there."""


@dataclass(frozen=True)
class Home:
    """One home directory. It need not exist."""

    path: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Home:
        """The home that ``RESOLUTE_HOME`` names, else ``~/.resolute``."""
        return cls(Path(environment.get(HOME_VARIABLE) or DEFAULT_HOME).expanduser())

    @property
    def endpoint_file(self) -> Path:
        """Written by the embedded cluster while it serves."""
        return self.path / "endpoint.json"

    @property
    def token_file(self) -> Path:
        """The operator's token, readable by its owner alone."""
        return self.path / "token"

    @property
    def identity_file(self) -> Path:
        """Which directory the home is, written by the embedded cluster."""
        return self.path / "home.json"

    def credential_file(self, address: str) -> Path:
        """The token that `resolute user login` got for a cluster, readable by its owner alone.

        Args:
            address: ``host:port`` of the cluster.
        """
        return self.path / "credentials" / quote(address, safe="")

    def trust_file(self, address: str) -> Path:
        """The certificate of a cluster that somebody confirmed at a login.

        Args:
            address: ``host:port`` of the cluster.
        """
        return self.path / "trusted" / f"{quote(address, safe='')}.json"

    def read_endpoint(self) -> LocalCluster | None:
        """Reads the embedded cluster's address; None when none serves this home.

        What a copied home says is its original's, which commands on the copy must not reach.

        Raises:
            FailedPreconditionError: The file cannot be read, or is not what a cluster writes.
        """
        try:
            content = json.loads(self.endpoint_file.read_text())
            if self._is_copy():
                return None
            return LocalCluster(
                address=str(content["address"]),
                token_path=Path(content["token_path"]),
                cluster_id=str(content.get("cluster_id", "")),
                pid=int(content.get("pid", 0)),
                http_url=str(content.get("http_url", "")),
                has_page=bool(content.get("page", True)),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FailedPreconditionError(
                f"cannot read {self.endpoint_file}: {error.strerror}; "
                f"let {HOME_VARIABLE} name a directory of your own, or give the address of the cluster"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FailedPreconditionError(
                f"{self.endpoint_file} is damaged ({error!r}); remove it and start the cluster again"
            ) from error

    def _is_copy(self) -> bool:
        """Whether the home was served elsewhere; ``resolute up`` looks closer."""
        try:
            return bool(json.loads(self.identity_file.read_text())["path"] != str(self.path.resolve()))
        except FileNotFoundError:
            return False
