"""Checks whether this installation can serve HTTP."""

from __future__ import annotations

import importlib.util

from resolute.contracts.distribution import install_command

_PACKAGES = ("connectrpc", "httptools", "starlette", "uvicorn")


def missing_for_http() -> str:
    """Says what serving HTTP lacks here, and the remedy; empty if nothing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} not installed; run `{install_command('gateway')}` with Python 3.11 or later"
