"""Waits in an event loop for the exit of processes that need not be children of this one."""

from __future__ import annotations

import asyncio
import os

from resolute.contracts.processes import ProcessIdentity, open_pidfd

POLL_SECONDS = 0.5
"""Pause between looks where the kernel cannot tell of an end."""


async def wait_for_exit(process: ProcessIdentity | None) -> None:
    """Waits until a process has ended; for a moment only where that cannot be known.

    Args:
        process: Who is waited for; None until its process has been reported.
    """
    descriptor = _descriptor_of(process)
    if descriptor is None:
        await asyncio.sleep(POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _descriptor_of(process: ProcessIdentity | None) -> int | None:
    """Opens a descriptor that tells of the end of this very process."""
    if process is None:
        return None
    try:
        descriptor = open_pidfd(process.pid)
    except ProcessLookupError:
        return None
    if descriptor is not None and ProcessIdentity.of(process.pid) != process:
        os.close(descriptor)
        return None
    return descriptor
