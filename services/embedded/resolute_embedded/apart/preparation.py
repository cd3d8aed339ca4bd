"""Prepares a new cluster of separate services: its id, its secrets, and certificates of its own authority."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.files.atomic_files import write_atomically
from resolute_embedded.apart.certificates import AUTHORITY_CERTIFICATE, issue_all
from resolute_serving.auth.forwarded_peers import KEY_VARIABLE

CLUSTER = "cluster.env"
"""Settings of every service."""
DATABASE, STORE, CHECKPOINTS, AUTHORITY, GATEWAY = "database", "store", "checkpoints", "authority", "gateway"
"""Folders that may be volumes of their own: for the database's container and its clients, for the object
store's, for the checkpoints service's, for this program's alone, and for the gateway's, which sees nothing
else."""
_PRIVATE = 0o600


def prepare(directory: Path, *, names: Sequence[str], gateway_names: Sequence[str] = ()) -> None:
    """Writes the files that are missing.

    Args:
        directory: Where they lie.
        names: Names and addresses that the certificate is for, besides this machine.
        gateway_names: Those of a gateway that is given a folder of its own, with a certificate of its own.
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
        # Last: where it is, the others are.
        write_secret(cluster, f"RESOLUTE_CLUSTER_ID={uuid.uuid4()}\n{_gateway_key()}")
    elif KEY_VARIABLE not in cluster.read_text():  # written by an earlier version
        write_secret(cluster, f"{cluster.read_text().rstrip()}\n{_gateway_key()}")
    _give_password_to_services(directory)
    authority, now = directory / AUTHORITY, SYSTEM_CLOCK.time()
    issue_all(directory, authority=authority, names=_with_this_machine(names), now=now)
    if gateway_names:
        gateway = directory / GATEWAY
        write_secret(gateway / CLUSTER, cluster.read_text())
        _share(gateway / AUTHORITY_CERTIFICATE, (directory / AUTHORITY_CERTIFICATE).read_text())
        issue_all(gateway, authority=authority, names=_with_this_machine(gateway_names), now=now)


def write_secret(path: Path, text: str) -> None:
    """Writes a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, text, mode=_PRIVATE, sync=True)


def _gateway_key() -> str:
    return f"{KEY_VARIABLE}={secrets.token_hex(32)}\n"


def _give_password_to_services(directory: Path) -> None:
    """Writes the database's password for libpq, in the folder that only services with a database see.

    Earlier versions wrote it beside the settings of all services: it is removed there.
    """
    folder = directory / DATABASE
    if not (folder / "pgpass").exists():
        write_secret(folder / "pgpass", f"*:*:*:*:{(folder / 'password').read_text()}\n")
    (directory / "pgpass").unlink(missing_ok=True)


def _with_this_machine(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(["localhost", "127.0.0.1", *names]))


def _share(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text, mode=0o444, sync=True)
