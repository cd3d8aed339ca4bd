"""Limits of open files: the hard limit for a service, the machine's usual limit for a trial.

A service needs thousands of connections. Programs that use ``select`` fail with descriptors above 1023, so a
run gets the soft limit with which the service was started.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, MutableMapping

VARIABLE = "RESOLUTE_OPEN_FILES"
"""Soft limit that runs of a service get."""
_MOST = 1 << 20


def raise_limit(environ: MutableMapping[str, str]) -> None:
    """Raises the soft limit of this process to the hard one.

    Args:
        environ: The environment of this process; gets the former limit, for runs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if 0 <= soft < most:
        environ.setdefault(VARIABLE, str(soft))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def restore_limit(environ: Mapping[str, str]) -> None:
    """Gives this process, which supervises a run, the limit from before.

    Args:
        environ: Its environment.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    former = environ.get(VARIABLE, "")
    if former.isdigit() and int(former) < soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(former), hard))
