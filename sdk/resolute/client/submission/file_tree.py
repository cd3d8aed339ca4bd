"""Lists the files of a model definition and checks them before they are packed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolute.client.submission.ignore_rules import IGNORE_FILE, IgnoreRules
from resolute.contracts.sizes import human_size
from resolute.errors import InvalidArgumentError

_LARGEST_SHOWN = 3


class ModelDefinitionError(InvalidArgumentError, ValueError):
    """The model definition cannot be submitted as it is.

    Examples:
        >>> from resolute import client
        >>> config = {"entrypoint": "python3 train.py", "searcher": {"name": "custom", "metric": "loss"}}
        >>> try:
        ...     client.create_experiment(config, "no-such-directory")
        ... except client.ModelDefinitionError:
        ...     print("nothing was submitted")
        nothing was submitted
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or directory of a model definition."""

    name: str
    """Path in the archive, parts joined by "/"."""
    source: Path
    """Where it lies."""
    directory: bool
    size: int
    """Bytes; zero for directories."""


def collect(model_definition: Path | None, includes: Sequence[Path], *, limit: int) -> list[Entry]:
    """Lists what belongs to a model definition, sorted by name.

    Args:
        model_definition: A directory, whose content becomes the root, or a single file; None for nothing.
        includes: Files and directories that come into the root under their own names.
        limit: Most bytes of all files together.

    Raises:
        ModelDefinitionError: Something is missing or unreadable, leads outside, has a name that another has
            too, or the whole is larger than ``limit``.
    """
    entries: list[Entry] = []
    total = 0
    owners: dict[str, tuple[int, Path]] = {}
    for number, (root, prefix) in enumerate(_roots(model_definition, includes)):
        for entry in _entries(root, prefix):
            top = entry.name.split("/", 1)[0]
            owner, owner_root = owners.setdefault(top, (number, root))
            if owner != number:
                raise ModelDefinitionError(
                    f"{owner_root} and {root} both bring {top!r} into the model definition; "
                    "rename one or leave it out"
                )
            entries.append(entry)
            total += entry.size
            if total > limit:
                raise _too_large(entries, total, limit)
    return sorted(entries, key=lambda entry: entry.name)


def _roots(model_definition: Path | None, includes: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    if model_definition is not None:
        yield model_definition, "" if model_definition.is_dir() else _own_name(model_definition)
    for include in includes:
        yield include, _own_name(include)


def _own_name(path: Path) -> str:
    # ``-i .`` and ``-i ..`` have no name of their own, the directories they mean have.
    return path.name if path.name not in {"", ".", ".."} else path.resolve().name


def _entries(root: Path, prefix: str) -> Iterator[Entry]:
    try:
        mode = root.stat().st_mode
    except OSError as error:
        raise ModelDefinitionError(f"cannot read {root}: {_why(error)}; check the path") from error
    if stat.S_ISREG(mode):
        yield from _file(prefix, root)
    elif stat.S_ISDIR(mode):
        if prefix:
            yield Entry(prefix, root, directory=True, size=0)
        yield from _Walk(root, prefix).below(root, "", (Path(os.path.realpath(root)),))
    else:
        raise ModelDefinitionError(
            f"{root} is neither a directory nor a file; a model definition is one of them"
        )


class _Walk:
    """The content of one directory tree. Links are followed if they stay inside it."""

    def __init__(self, root: Path, prefix: str) -> None:
        self._root = root
        self._real_root = Path(os.path.realpath(root))
        self._prefix = f"{prefix}/" if prefix else ""
        self._ignores = IgnoreRules(root)

    def below(self, directory: Path, path: str, ancestors: tuple[Path, ...]) -> Iterator[Entry]:
        """Yields what is in a directory, and the directories in it.

        Args:
            directory: Where it lies.
            path: Its path below the root, empty for the root.
            ancestors: The directories that lead here, as they really are, this one last.
        """
        for item in self._scan(directory):
            source = directory / item.name
            below = _checked_name(f"{path}/{item.name}" if path else item.name, source)
            is_directory = _is_directory(item)
            if self._ignores.skips(below, directory=is_directory):
                continue
            if item.is_symlink():
                self._check_link(source)
            if is_directory:
                yield Entry(self._prefix + below, source, directory=True, size=0)
                real = Path(os.path.realpath(source))
                if real in ancestors:
                    raise ModelDefinitionError(
                        f"the link {source} leads back to {real}, which contains it; "
                        f"remove it or add it to {IGNORE_FILE}"
                    )
                yield from self.below(source, below, (*ancestors, real))
            else:
                yield from _file(self._prefix + below, source)

    def _scan(self, directory: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as items:
                return sorted(items, key=lambda item: item.name)
        except OSError as error:
            raise ModelDefinitionError(
                f"cannot read {directory}: {_why(error)}; make it readable or add it to {IGNORE_FILE}"
            ) from error

    def _check_link(self, source: Path) -> None:
        try:
            target = Path(os.path.realpath(source, strict=True))
        except OSError as error:
            raise ModelDefinitionError(
                f"the link {source} leads nowhere ({_why(error)}); remove it or add it to {IGNORE_FILE}"
            ) from error
        if not target.is_relative_to(self._real_root):
            # Anyone who wrote this directory must not make its submitter upload files from elsewhere unseen.
            raise ModelDefinitionError(
                f"the link {source} leads to {target}, outside of {self._root}; "
                f"add it to {IGNORE_FILE}, or include what it leads to with -i"
            )


def _file(name: str, source: Path) -> Iterator[Entry]:
    try:
        status = source.stat()
    except OSError as error:
        raise ModelDefinitionError(f"cannot read {source}: {_why(error)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ModelDefinitionError(
            f"{source} is a socket, pipe or device and cannot be submitted; "
            f"remove it or add it to {IGNORE_FILE}"
        )
    yield Entry(name, source, directory=False, size=status.st_size)


def _is_directory(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:  # a link to itself, which is refused as a link
        return False


def _checked_name(name: str, source: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ModelDefinitionError(
            f"the name of {os.fsencode(source)!r} is not valid UTF-8; rename it"
        ) from error
    return name


def largest(entries: Sequence[Entry]) -> str:
    """Names the largest files with their sizes."""
    files = sorted((entry for entry in entries if not entry.directory), key=lambda entry: -entry.size)
    return ", ".join(f"{entry.name} ({human_size(entry.size)})" for entry in files[:_LARGEST_SHOWN])


def _too_large(entries: Sequence[Entry], total: int, limit: int) -> ModelDefinitionError:
    return ModelDefinitionError(
        f"the model definition holds {human_size(total)} or more, which exceeds the maximum allowed size "
        f"of {human_size(limit)}; leave data out with {IGNORE_FILE} (largest so far: {largest(entries)})"
    )


def _why(error: OSError) -> str:
    return error.strerror or str(error)
