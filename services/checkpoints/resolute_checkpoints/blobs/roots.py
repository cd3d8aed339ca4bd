"""The roots: the places below which checkpoints may be stored, and those that a script may name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from resolute.errors import PermissionDeniedError
from resolute_checkpoints.domain.checkpoint import BucketStorage, Provider

DIRECTORIES_SETTING = "RESOLUTE_CHECKPOINTS_ROOTS"
"""Lists directories."""
BUCKETS_SETTING = "RESOLUTE_CHECKPOINTS_BUCKETS"
"""Lists buckets."""
EVERY_BUCKET = "*"
"""Entry of a list that every bucket is below."""
WORKSPACES = "workspaces-"
"""What the name of a directory begins with that has those of workspaces; a cluster's identifier follows."""
_OF_WORKSPACES = re.compile(rf"{WORKSPACES}[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}")
_SCHEMES = {Provider.S3: "s3", Provider.GCS: "gs", Provider.AZURE: "azure"}


@dataclass(frozen=True, kw_only=True)
class Roots:
    """The places that the operator lists, and the cluster's own.

    If the operator lists no places, configs of experiments may name any bucket, and any directory outside of
    the cluster's home if the cluster has only one user. The experiments service checks the latter. Scripts
    may name only the place of their config and places below a root.
    """

    directories: tuple[Path, ...] = ()
    """Directories that the operator lists; if any, no checkpoint lies elsewhere but below ``own``."""
    buckets: tuple[str, ...] = ()
    """Buckets that the operator lists, each perhaps with the address of its store before it and a prefix
    behind it; if any, no checkpoint lies in another bucket."""
    own: Path | None = None
    """Directory of the cluster for checkpoints: always a root; None if there is none."""
    private: Path | None = None
    """Directory of the cluster's own files, in which no checkpoint may lie but below a root."""

    @property
    def limits_buckets(self) -> bool:
        """Whether a config may name some buckets only."""
        return bool(self.buckets) and EVERY_BUCKET not in self.buckets

    def require_directory(self, path: Path, *, listed: bool = False, below_roots: bool = False) -> None:
        """Checks that checkpoints may be stored in a directory.

        Args:
            path: The directory.
            listed: Whether it must be below a root because a script named it, not a config.
            below_roots: Whether that of a config must be, although the operator lists none.

        Raises:
            PermissionDeniedError: It is not below a root, and must be; or the cluster's own files are there.
        """
        roots = [*self.directories, *([] if self.own is None else [self.own])]
        real = os.path.realpath(path)
        private = [] if self.private is None else [os.path.realpath(self.private)]
        inside = _below(real, private)
        if any(
            _below(real, [root]) and (not inside or _below(root, private))
            for root in map(os.path.realpath, roots)
        ):
            return
        if listed or (not inside and (below_roots or self.directories)):
            raise _outside(
                path, map(str, roots), setting=DIRECTORIES_SETTING, kind="directories", listed=listed
            )
        if inside:
            raise PermissionDeniedError(
                f"checkpoints may not be stored in {path}, where the cluster keeps its own files; "
                "name another directory"
            )

    def require_nameable(self, path: Path) -> None:
        """Checks that a directory is not in a workspace's directory: runs get their own workspace's.

        Raises:
            PermissionDeniedError: Neither a config nor a script may name it.
        """
        if any(map(_OF_WORKSPACES.fullmatch, os.path.realpath(path).split("/"))):
            raise PermissionDeniedError(
                f"checkpoints may not be stored in {path}, which belongs to a workspace: name the directory "
                f"above {WORKSPACES}CLUSTER, and they lie with those of the experiment's workspace"
            )

    def require_bucket(self, storage: BucketStorage, *, address: str, listed: bool) -> None:
        """Checks that checkpoints may be stored in a bucket.

        Args:
            storage: The bucket.
            address: That of its store.
            listed: Whether it must be below a root because a script named it, not a config.

        Raises:
            PermissionDeniedError: It is not below a root, and must be.
        """
        if EVERY_BUCKET in self.buckets or not (listed or self.buckets):
            return
        place = f"{storage.bucket}/{storage.prefix}".rstrip("/")
        spellings = [place, f"{address}/{place}"]
        if not storage.endpoint_url:
            spellings.append(f"{_SCHEMES[storage.provider]}://{place}")
        if not any(_below(spelling, self.buckets) for spelling in spellings):
            raise _outside(
                f"bucket {address}/{place}",
                self.buckets,
                setting=BUCKETS_SETTING,
                kind="buckets",
                listed=listed,
            )


def _below(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _outside(
    place: Path | str, roots: Iterable[str], *, setting: str, kind: str, listed: bool
) -> PermissionDeniedError:
    allowed = ", ".join(roots) or "none"
    if listed:
        may = (
            f"a script may name the storage of its experiment's config and {kind} below {allowed}, "
            "`storage doctor` only the latter"
        )
    else:
        may = f"this service allows {kind} below {allowed}"
    return PermissionDeniedError(
        f"checkpoints may not be stored in {place}: {may}; name one of them, or let the operator add "
        f"the place to {setting}"
    )
