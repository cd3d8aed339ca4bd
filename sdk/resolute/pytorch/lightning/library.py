"""The Lightning library that the script uses, under either of its two names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

NAMES = ("lightning.pytorch", "pytorch_lightning")


def find_library() -> ModuleType:
    """Returns the imported library, otherwise the installed one.

    Raises:
        ImportError: Neither is installed.
    """
    imported = [name for name in NAMES if name in sys.modules]
    installed = [name for name in NAMES if importlib.util.find_spec(name.partition(".")[0]) is not None]
    for name in imported + installed:
        return importlib.import_module(name)
    raise ImportError("resolute.lightning needs Lightning: pip install lightning")
