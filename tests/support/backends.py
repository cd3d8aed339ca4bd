"""What tests need of the machine beside Python: PostgreSQL, object stores, a disk that can be filled."""

from __future__ import annotations

import importlib.util
from typing import NoReturn

import pytest

_required = False


def require_all() -> None:
    """From now on what is missing fails the test that needs it, as `--require-backends` asks."""
    global _required  # noqa: PLW0603 - set once, while pytest configures itself
    _required = True


def missing(reason: str) -> NoReturn:
    """Skips the test, or the module that is being imported; fails it where all backends are required.

    Args:
        reason: What is not here, and how to get it.
    """
    if _required:
        pytest.fail(f"{reason} (required by --require-backends)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def need_module(name: str, *, remedy: str = "`make distributed` installs it") -> None:
    """Wants a package, by default one that `make distributed` installs, or skips as ``missing`` does."""
    if importlib.util.find_spec(name) is None:
        missing(f"{name} is not installed: {remedy}")
