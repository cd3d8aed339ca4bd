"""Which variables all runs of an experiment on a slot have alike."""

from __future__ import annotations

from collections.abc import Mapping

_PER_RUN = ("DET_", "RESOLUTE_")
"""Variables that differ from run to run, tokens among them; no library reads them when it is imported."""
_PER_RUN_NAMES = frozenset({"TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"})


def shared_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a run that its parked process has too: no fact of the run and no token."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(_PER_RUN) and name not in _PER_RUN_NAMES
    }
