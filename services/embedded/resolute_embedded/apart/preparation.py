"""What a new cluster of separate services begins with: an id, secrets, certificates of its own authority."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.files.atomic_files import write_atomically
from resolute_embedded.apart.certificates import issue_all

CLUSTER = "cluster.env"
"""Settings of every service."""
DATABASE, STORE, CHECKPOINTS, AUTHORITY = "database", "store", "checkpoints", "authority"
"""Folders that may be volumes of their own: for the database's container, for the object store's, for the
checkpoints service's, and for this program's alone."""
_PRIVATE = 0o600


def prepare(directory: Path, *, names: Sequence[str]) -> None:
    """Writes the files that are missing.

    Args:
        directory: Where they lie.
        names: Names and addresses that the certificate is for, besides this machine.
    """
    directory.mkdir(parents=True, exist_ok=True)
    cluster = directory / CLUSTER
    if not cluster.exists():
        password, access, secret = secrets.token_hex(24), secrets.token_hex(10), secrets.token_hex(24)
        # Users of other numbers read these two: each lies in a volume that only they and this program see.
        _share(directory / DATABASE / "password", password)
        _share(directory / STORE / "keys.env", f"ROOT_ACCESS_KEY={access}\nROOT_SECRET_KEY={secret}\n")
        write_secret(
            directory / CHECKPOINTS / "store.env",
            f"RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY={access}\nRESOLUTE_CHECKPOINTS_S3_SECRET_KEY={secret}\n",
        )
        write_secret(directory / "pgpass", f"*:*:*:*:{password}\n")
        # Last: where it is, the others are.
        write_secret(cluster, f"RESOLUTE_CLUSTER_ID={uuid.uuid4()}\n")
    for_names = list(dict.fromkeys(["localhost", "127.0.0.1", *names]))
    issue_all(directory, authority=directory / AUTHORITY, names=for_names, now=SYSTEM_CLOCK.time())


def write_secret(path: Path, text: str) -> None:
    """Writes a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, text, mode=_PRIVATE, sync=True)


def _share(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text, mode=0o444, sync=True)
