"""Limits and other attributes that a fork inherits from its parked process, not from the supervisor."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


def inherited() -> dict[str, Any]:
    """Describes this process: control group, resource limits, niceness, processors, umask, OOM score."""
    return {
        "cgroup": _text("cgroup"),
        "oom_score_adj": _text("oom_score_adj"),
        "umask": next((line for line in _text("status").splitlines() if line.startswith("Umask")), ""),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cpus": sorted(os.sched_getaffinity(0)),
        "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS},
    }


def _text(name: str) -> str:
    try:
        return Path(f"/proc/self/{name}").read_text()
    except OSError:
        return ""
