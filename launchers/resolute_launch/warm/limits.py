"""What a fork inherits of its parked process and a new process would inherit of the supervisor."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


def inherited(pid: int = 0) -> dict[str, Any]:
    """Describes a process: control group, resource limits, niceness, processors, umask, OOM score.

    Args:
        pid: The process, which may be a child of this one; 0 for this one.
    """
    status = _text(pid, "status").splitlines()
    return {
        "cgroup": _text(pid, "cgroup"),
        "oom_score_adj": _text(pid, "oom_score_adj"),
        "umask": next((line for line in status if line.startswith("Umask")), ""),
        "nice": os.getpriority(os.PRIO_PROCESS, pid),
        "cpus": sorted(os.sched_getaffinity(pid)),
        "limits": {name: list(resource.prlimit(pid, getattr(resource, name))) for name in _LIMITS},
    }


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid or 'self'}/{name}").read_text()
    except OSError:
        return ""
