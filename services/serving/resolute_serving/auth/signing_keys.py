"""The private keys of a cluster, in one file: the first one signs, the others were rotated out.

Tokens of an older key stay valid until that key is dropped. A process that uses the file sees each change
within a second, so a key can be rotated while the cluster runs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError

OVERLAP_SECONDS = 2 * 3600.0
"""After a rotation, every token of a run that lives was renewed."""
_LOOK_SECONDS = 1.0
"""Between two looks at the file. A look at each call would let go of the interpreter, which other threads
keep for milliseconds."""
_BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----\s*", re.DOTALL)


class KeyFile:
    """Reads the keys again whenever their file has changed. A missing file is created with one key.

    Args:
        path: The file, which only its owner can read.
        clock: Clock for the interval of checks of the file.
    """

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._look_at = -math.inf
        self._keys: tuple[Ed25519PrivateKey, ...] = ()

    def __call__(self) -> tuple[Ed25519PrivateKey, ...]:
        """The keys, the one that signs first, as the file had them within the last second.

        Raises:
            TypeError: The file holds something else.
        """
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look()
            self._look_at = now + _LOOK_SECONDS
        return self._keys

    def look_again(self) -> tuple[Ed25519PrivateKey, ...]:
        """The keys as the file has them now."""
        self._look_at = -math.inf
        return self()

    def _look(self) -> None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            if self._keys:  # what is in use stays so
                return
            _write(self._path, [Ed25519PrivateKey.generate()])
            status = self._path.stat()
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            self._keys = _read(self._path)
            self._seen = seen


def load_or_create_key(path: Path) -> Ed25519PrivateKey:
    """Reads the key that signs for a cluster, or makes one readable by its owner alone."""
    return KeyFile(path)()[0]


def rotate(path: Path) -> None:
    """Makes a new key, which signs from now on; the others still verify.

    Raises:
        FailedPreconditionError: There is no key yet.
    """
    _write(path, [Ed25519PrivateKey.generate(), *_existing(path)])


def drop_old(path: Path, *, now: float | None) -> int:
    """Deletes all keys but the one that signs; tokens of the others become invalid.

    Args:
        path: The file.
        now: Unix time, to keep keys that running trials may still need; None to drop those too.

    Returns:
        How many were dropped.

    Raises:
        FailedPreconditionError: The last rotation was less than two hours ago, or there is no key.
    """
    current, *old = _existing(path)
    if not old:
        return 0
    rotated = path.stat().st_mtime
    if now is not None and now - rotated < OVERLAP_SECONDS:
        minutes = math.ceil((rotated + OVERLAP_SECONDS - now) / 60)
        raise FailedPreconditionError(
            "the key was rotated less than two hours ago, and running trials may have tokens of the old one: "
            f"wait for {minutes} minutes, or end these too by --now"
        )
    _write(path, [current])
    return len(old)


def _existing(path: Path) -> Sequence[Ed25519PrivateKey]:
    if not path.exists():
        raise FailedPreconditionError(f"{path} does not exist: the cluster has no key yet")
    return KeyFile(path)()


def _write(path: Path, keys: Sequence[Ed25519PrivateKey]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pem = b"".join(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        for key in keys
    )
    owner = path.stat() if path.exists() else None
    write_atomically(path, pem, mode=0o600, sync=True)
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def _read(path: Path) -> tuple[Ed25519PrivateKey, ...]:
    blocks = _BLOCK.findall(path.read_bytes())
    keys = [serialization.load_pem_private_key(block, password=None) for block in blocks]
    ours = [key for key in keys if isinstance(key, Ed25519PrivateKey)]
    if not ours or len(ours) < len(keys):
        raise TypeError(f"{path} does not hold Ed25519 private keys; move it away to have a new one made")
    return tuple(ours)
