"""Checks whether this installation can serve HTTP."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from resolute.contracts.distribution import install_command

BUILT = Path(__file__).with_name("page")
"""Where the files of the page are, in a clone and in a wheel."""
NO_PAGE = (
    "its files were left out of this installation; in a clone, `make page` builds them: then install again"
)
_PACKAGES = ("connectrpc", "httptools", "starlette", "uvicorn")


def missing_for_http() -> str:
    """Says what serving HTTP lacks here, and the remedy; empty if nothing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} not installed; run `{install_command('gateway')}` with Python 3.11 or later"


def has_page(built: Path | None = None) -> bool:
    """Whether there is a page for browsers, in this installation or in the folder of another build."""
    return ((built or BUILT) / "index.html").is_file()
