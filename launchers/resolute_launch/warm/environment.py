"""The environment that all forks of a parked process share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

PER_RUN = ("DET_", "RESOLUTE_")
"""Variables that differ from run to run, tokens among them; no library reads them when it is imported."""
_PER_RUN_NAMES = frozenset({"TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"})


def shared_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a run that its parked process has too: no fact of the run and no token."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(PER_RUN) and name not in _PER_RUN_NAMES
    }


def digest_of(environment: Mapping[str, str], limits: Mapping[str, Any]) -> str:
    """Names what a fork inherits: runs with equal names can be forks of one parked process.

    Args:
        environment: All variables of a run.
        limits: What ``inherited`` says of the process that starts it.
    """
    whole = json.dumps([shared_environment(environment), limits], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]
