"""The code of a trial, kept with its checkpoints."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

_MAX_FILE = 1 << 20
_MAX_FILES = 1000
_SKIPPED = frozenset({"__pycache__", "site-packages", "node_modules", "checkpoints"})


def copy_code(trial_class: type, destination: Path, *, on_cluster: bool) -> None:
    """Copies the code that a trial's class needs to be imported again.

    Large files are data and stay behind; so does what is hidden, and what this process may not read: a script
    may lie anywhere, and a checkpoint matters more than what happens to be beside it.

    Args:
        trial_class: The class.
        destination: Directory to copy to; created.
        on_cluster: Whether the working directory holds the experiment's code, and nothing else.
    """
    destination.mkdir(parents=True, exist_ok=True)
    root = Path.cwd() if on_cluster else _directory_of(trial_class)
    if root is None:
        return
    for number, path in enumerate(_files(root, python_only=not on_cluster)):
        if number >= _MAX_FILES:
            break
        target = destination / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError, FileNotFoundError):
            shutil.copyfile(path, target)


def trial_class_name(trial_class: type) -> str:
    """Returns ``module:Class`` from which the class can be imported, also of the script that is running."""
    module = trial_class.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).stem if file else module
    return f"{module}:{trial_class.__qualname__}"


def _directory_of(trial_class: type) -> Path | None:
    """Returns the directory from which the module, or its top-level package, is imported."""
    module = sys.modules.get(trial_class.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    depth = trial_class.__module__.count(".")
    return Path(file).resolve().parents[depth]


def _files(root: Path, *, python_only: bool) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if _belongs(Path(folder, name)))
        yield from (path for path in map(Path(folder).joinpath, sorted(names)) if _is_code(path, python_only))


def _belongs(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _SKIPPED or folder.is_symlink():
        return False
    try:
        return not (folder / "pyvenv.cfg").exists()
    except PermissionError:
        return False


def _is_code(path: Path, python_only: bool) -> bool:
    if python_only and path.suffix != ".py":
        return False
    try:
        return path.is_file() and path.stat().st_size <= _MAX_FILE
    except (PermissionError, FileNotFoundError):
        return False
