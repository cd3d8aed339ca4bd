"""The fingerprint of the code that wrote a state: other code may interpret the state differently."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from resolute_searcher.methods.registry import kind_of
from resolute_searcher.spec.search import PluginSpec, SearchSpec


def fingerprint(spec: SearchSpec) -> str | None:
    """Returns a fingerprint of the code that determines the state of a search.

    Returns:
        A text that changes with the method's version and with any line of this package; None for a method
        of another distribution, whose code may change without a sign.
    """
    if isinstance(spec.method, PluginSpec):
        return None
    return f"{kind_of(spec).label} {_package()}"


@cache
def _package() -> str:
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
