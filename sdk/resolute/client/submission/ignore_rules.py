"""Rules for the files that a model definition leaves out: those of ``.detignore``, and caches."""

from __future__ import annotations

from pathlib import Path

import pathspec

from resolute.errors import InvalidArgumentError

IGNORE_FILE = ".detignore"
"""Honoured at the root of a model definition and of each included directory; has the syntax of .gitignore."""

_ALWAYS = (
    "__pycache__/",
    "*.py[co]",
    "*$py.class",
    "terraform*",
    ".git/",
    ".vscode/",
    ".idea/",
    ".mypy_cache/",
    "/shared_fs",
    "/downloads/",  # where commands put checkpoints; a line `!/downloads/` takes it in again
    f"/{IGNORE_FILE}",
)


class IgnoreRules:
    """The rules of one directory tree.

    Args:
        root: The tree's root; its ``.detignore`` is read, if there is one.

    Raises:
        InvalidArgumentError: The file cannot be read, or it has an invalid pattern.
    """

    def __init__(self, root: Path) -> None:
        path = root / IGNORE_FILE
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines() if path.is_file() else []
            self._spec = pathspec.GitIgnoreSpec.from_lines([*_ALWAYS, *lines])
        except OSError as error:
            raise InvalidArgumentError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"{path} is not text in UTF-8: save it in that encoding") from error
        except ValueError as error:  # also pathspec's own errors
            raise InvalidArgumentError(f"{path} is not a list of patterns: {error}") from error

    def skips(self, path: str, *, directory: bool) -> bool:
        """Whether a file or directory is left out.

        Args:
            path: Path below the root, parts joined by "/".
            directory: Whether it is a directory; what is in an ignored one is never asked for.
        """
        return self._spec.match_file(f"{path}/" if directory else path)
