"""Imports modules of a directory temporarily, without mixing them with modules of other directories."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def import_from_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Puts a directory first on ``sys.path`` within a block; then removes the modules imported from it.

    Modules of the same names that were imported from elsewhere before are put aside inside and come back at
    the end, so that two checkpoints with a ``model_def`` each can be loaded by one process.

    Args:
        path: The directory.

    Examples:
        >>> from pathlib import Path
        >>> import resolute
        >>> Path("code").mkdir()
        >>> written = Path("code", "shapes.py").write_text("SIDES = 4")
        >>> with resolute.import_from_path("code"):
        ...     import shapes
        >>> shapes.SIDES
        4
    """
    directory = Path(path).resolve()
    aside = {name: module for name, module in sys.modules.items() if _provided_by(directory, name)}
    for name in aside:
        del sys.modules[name]
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(directory))
        for name in [name for name, module in list(sys.modules.items()) if _lies_in(directory, module)]:
            del sys.modules[name]
        sys.modules.update(aside)


def _provided_by(directory: Path, name: str) -> bool:
    """Returns whether the directory contains a module of this name."""
    top = name.partition(".")[0]
    return (directory / f"{top}.py").exists() or (directory / top / "__init__.py").exists()


def _lies_in(directory: Path, module: object) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(directory)
