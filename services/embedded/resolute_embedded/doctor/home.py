"""Checks of the home directory: whether it is usable, and its leftover files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_embedded.home.identity import HomeIdentity, recorded_identity
from resolute_embedded.home.state_directory import StateDirectory

_OTHERS = 0o077
"""Permission bits of group and world."""


def check_home(state: StateDirectory) -> Iterator[Finding]:
    """Looks at the home directory and at the directory of checkpoints."""
    path = state.home.path
    if not path.exists():
        yield good("home", f"{path} is made by the first `resolute up`")
        return
    yield _owner(path)
    yield _writable("home", path)
    if state.checkpoints.exists():
        yield _writable("storage", state.checkpoints)
    yield _secrets(state)
    yield from _identity(state)
    if not state.lock.is_held():
        yield _leftovers(state)


def _owner(path: Path) -> Finding:
    status = path.stat()
    if status.st_uid != os.getuid():
        return fault(
            "owner of the home",
            f"{path} belongs to user {status.st_uid}, this is user {os.getuid()}",
            remedy="let RESOLUTE_HOME name a directory of your own",
        )
    if status.st_mode & _OTHERS:
        return warning(
            "owner of the home",
            f"{path} can be read by others (mode {status.st_mode & 0o777:o})",
            remedy=f"chmod 700 {path}",
        )
    return good("owner of the home", f"{path} is yours alone")


def _writable(subject: str, path: Path) -> Finding:
    probe = path / f".{uuid.uuid4()}.tmp"
    written = b"resolute doctor\n"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(written)
            stream.flush()
            os.fsync(stream.fileno())
        if probe.read_bytes() != written:
            return fault(subject, f"{path} gave back other bytes than were written", remedy="check its disk")
    except OSError as error:
        return fault(
            subject,
            f"a file in {path} cannot be written: {error.strerror}",
            remedy=f"check permissions and mount options of {path}",
        )
    finally:
        with suppress(OSError):  # a read-only file system refuses it even where there is none
            probe.unlink()
    return good(subject, f"a file in {path} was written, read and removed")


def _secrets(state: StateDirectory) -> Finding:
    open_ones = [
        str(path)
        for path in (state.home.token_file, state.signing_key)
        if path.exists() and path.stat().st_mode & _OTHERS
    ]
    if open_ones:
        return fault(
            "secrets",
            f"{', '.join(open_ones)} can be read by others",
            remedy=f"chmod 600 {' '.join(open_ones)}",
        )
    return good("secrets", "token and signing key can be read by you alone")


def _identity(state: StateDirectory) -> Iterator[Finding]:
    known = recorded_identity(state)
    if known is not None and not known.is_same(HomeIdentity.of(state.home.path)):
        yield fault(
            "identity of the home",
            f"{state.home.path} is a copy of the home {known.path}, or was moved from there",
            remedy="`resolute adopt-copy` makes it a separate cluster",
        )


def _leftovers(state: StateDirectory) -> Finding:
    names = sorted(path.name for path in state.home.path.glob(".*.tmp"))
    if names:
        return warning(
            "leftovers",
            f"a cluster that was killed left {', '.join(names)}",
            remedy="none is needed: the next `resolute up` removes them",
        )
    return good("leftovers", "nothing half written")
