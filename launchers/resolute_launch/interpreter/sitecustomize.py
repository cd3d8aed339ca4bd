"""Runs at the start of each interpreter, in every run.

In a run with an overlay the platform's interpreter replaces itself by the overlay's. So a hook, an entrypoint
or a script that names the platform's interpreter by its path also uses the overlay. The folder of this module
is on ``PYTHONPATH``; nothing imports it by its full name, and the interpreter may be older than the
platform's.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

import _resolute_output  # type: ignore[import-not-found]
import _resolute_stacks  # type: ignore[import-not-found]

_OVERLAY, _BASE = "RESOLUTE_OVERLAY", "RESOLUTE_OVERLAY_BASE"
"""The interpreter of the overlay, and the environment below as it names itself (``overlay.py`` sets both)."""


def _give_way() -> None:
    overlay = os.environ.get(_OVERLAY)
    arguments = list(getattr(sys, "orig_argv", ()))
    # A program that embeds an interpreter is none.
    called = os.path.basename(arguments[0]) if arguments else ""  # noqa: PTH119
    if overlay and called.startswith("python") and os.environ.get(_BASE) == f"{sys.prefix} {sys.version}":
        os.execv(overlay, [overlay, *arguments[1:]])  # noqa: S606 - that is what it is for


def _load_hidden() -> None:
    """Loads the module of this name that this one hides."""
    here = os.path.normpath(os.path.dirname(__file__))  # noqa: PTH120
    path = [entry for entry in sys.path if os.path.normpath(entry) != here]
    spec = PathFinder.find_spec(__name__, path)
    if spec is not None and spec.loader is not None:
        sys.modules[__name__] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


_give_way()
_resolute_stacks.install()
_resolute_output.install()
_load_hidden()
