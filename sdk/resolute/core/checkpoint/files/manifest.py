"""The manifest of a checkpoint: its files with sizes and digests."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from resolute.contracts.files.digests import PREFERRED, format_digest, new_hash
from resolute.errors import DataLossError, FailedPreconditionError
from resolute.transfer.progress import NO_PROGRESS, Progress

METADATA_FILE = "metadata.json"
VIEW_PREFIX = ".resolute-reading-"
"""Of views in the directory of their checkpoint: one that a killed process left is removed with that."""
_MOST_METADATA_BYTES = 1 << 20
"""A larger file is none that was written with a checkpoint."""
_BLOCK_BYTES = 1 << 18
_THREADS = 4

Selector = Callable[[str], bool]
"""Says of a file, by its relative path, whether it is wanted. Directories end in a slash."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a checkpoint."""

    path: str
    """Relative path, parts joined by slashes; a directory ends in one."""
    size: int
    """Bytes; zero for a directory."""
    digest: str
    """Digest of the content as ``algorithm:hex``; empty for a directory."""
    upload_id: str = ""
    """Of a file that was sent in parts: identifies them until the commit puts them together."""
    etags: tuple[str, ...] = ()
    """Tags of those parts, in order."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.path.endswith("/")


def list_directory(root: Path) -> dict[str, int]:
    """Returns everything below a directory: bytes by relative path; directories end in a slash and have none.

    Links are followed, except those to a directory that the walk is in already. Views of a checkpoint, which
    come and go, are left out.

    Raises:
        FailedPreconditionError: Something is neither a file nor a directory, a link that leads nowhere, or
            has a name that is no text.
    """
    resources: dict[str, int] = {}
    for path in _walk(root, frozenset({root.resolve()})):
        relative = path.relative_to(root).as_posix()
        try:
            relative.encode()
            status = path.stat()
        except UnicodeEncodeError as failure:
            raise _unsupported(path, "has a name that is not text in UTF-8", remedy="rename it") from failure
        except FileNotFoundError as failure:
            raise _unsupported(path, "is a link that leads nowhere") from failure
        if stat.S_ISDIR(status.st_mode):
            resources[f"{relative}/"] = 0
        elif stat.S_ISREG(status.st_mode):
            resources[relative] = status.st_size
        else:
            # To read a pipe would be to wait forever.
            raise _unsupported(path, "is neither a file nor a directory")
    return resources


def bytes_on_disk(root: Path, paths: Iterable[str]) -> int:
    """Returns how much of its disk files take; less than their bytes where that compresses them."""
    return sum(os.stat(f"{root}/{path}").st_blocks * 512 for path in paths if not path.endswith("/"))  # noqa: PTH116 - for 100 000 files


def _unsupported(path: Path, problem: str, *, remedy: str = "remove it") -> FailedPreconditionError:
    shown = os.fsencode(path).decode(errors="backslashreplace")
    return FailedPreconditionError(f"{shown} {problem}, and cannot be in a checkpoint; {remedy} and repeat")


def _walk(directory: Path, above: frozenset[Path]) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name.startswith(VIEW_PREFIX):
            continue
        if not path.is_dir():
            yield path
        elif (real := path.resolve()) not in above:
            yield path
            yield from _walk(path, above | {real})


def describe_files(root: Path, paths: Iterable[str], *, progress: Progress = NO_PROGRESS) -> list[FileEntry]:
    """Returns entries with sizes and digests, and makes sure that the files are on disk.

    Args:
        root: The directory.
        paths: Relative paths.
        progress: Counts the bytes that were read.
    """

    def read(path: str) -> FileEntry:
        if path.endswith("/"):
            return FileEntry(path, 0, "")
        with (root / path).open("rb", buffering=0) as file:
            entry = _digest(path, file, progress=progress)
            os.fsync(file.fileno())
        return entry

    return _in_parallel(read, paths)


def hash_files(
    root: Path,
    paths: Iterable[str],
    algorithms: Mapping[str, str] = MappingProxyType({}),
    *,
    progress: Progress = NO_PROGRESS,
) -> list[FileEntry]:
    """Returns entries of files with sizes and digests; nothing is made sure of their being on disk.

    Args:
        root: The directory.
        paths: Relative paths, no directories.
        algorithms: How to sum files up, by path; others as new files are.
        progress: Counts the bytes that were read.
    """

    def read(path: str) -> FileEntry:
        with (root / path).open("rb", buffering=0) as file:
            return _digest(path, file, algorithm=algorithms.get(path, PREFERRED), progress=progress)

    return _in_parallel(read, paths)


def copy_and_hash(
    source: Path,
    target: Path,
    paths: Iterable[str],
    algorithms: Mapping[str, str] = MappingProxyType({}),
    *,
    on_disk: bool,
    progress: Progress = NO_PROGRESS,
) -> list[FileEntry]:
    """Copies files and returns their entries.

    Args:
        source: Directory to copy from.
        target: Directory to copy to; created if need be.
        paths: Relative paths.
        algorithms: How to sum files up, by path; others as new files are.
        on_disk: Whether what was copied is safe from a crash of the machine once this returns.
        progress: Counts the bytes that were copied.
    """
    wanted = list(paths)
    target.mkdir(parents=True, exist_ok=True)
    make_directories(target, wanted)

    def copy(path: str) -> FileEntry:
        if path.endswith("/"):
            return FileEntry(path, 0, "")
        # Never into a file that is there: another checkpoint may have a link to it.
        (target / path).unlink(missing_ok=True)
        with (source / path).open("rb", buffering=0) as reader, (target / path).open("xb") as writer:
            entry = _digest(
                path, reader, writer, algorithm=algorithms.get(path, PREFERRED), progress=progress
            )
            if on_disk:
                writer.flush()
                os.fsync(writer.fileno())
        return entry

    return _in_parallel(copy, wanted)


def copy_files(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copies files as fast as can be; nothing is hashed or made sure of.

    Args:
        source: Directory to copy from.
        target: Directory to copy to.
        paths: Relative paths.
    """
    wanted = list(paths)
    make_directories(target, wanted)
    for path in wanted:
        if not path.endswith("/"):
            shutil.copyfile(source / path, target / path)


def _digest(
    path: str,
    reader: FileIO,
    writer: BinaryIO | None = None,
    *,
    algorithm: str = PREFERRED,
    progress: Progress,
) -> FileEntry:
    summed = new_hash(algorithm)
    size = 0
    # One small buffer stays in the processor's cache, which is half of the speed.
    most = min(_BLOCK_BYTES, os.fstat(reader.fileno()).st_size + 1)
    buffer = memoryview(bytearray(most))
    while count := reader.readinto(buffer):
        piece = buffer[:count]
        summed.update(piece)
        size += count
        if writer is not None:
            writer.write(piece)
        progress.advance(count)
    return FileEntry(path, size, format_digest(summed, algorithm))


def _in_parallel(work: Callable[[str], FileEntry], paths: Iterable[str]) -> list[FileEntry]:
    wanted = list(paths)
    if len(wanted) < 2:
        return [work(path) for path in wanted]
    with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="resolute-checkpoint") as pool:
        return list(pool.map(work, wanted))


def verify(root: Path, files: Sequence[FileEntry], *, name: str, progress: Progress = NO_PROGRESS) -> None:
    """Compares the files of a directory with what was committed.

    Args:
        root: The directory.
        files: What must be there; other files do not matter.
        name: Names the checkpoint in errors.
        progress: Counts the bytes that were read.

    Raises:
        DataLossError: A file is missing, or its content is another; it lists all such files.
    """
    faults = [f"{entry.path} is missing" for entry in files if not (root / entry.path).exists()]
    present = [entry for entry in files if not entry.is_directory and (root / entry.path).is_file()]
    paths = [entry.path for entry in present]
    actual = hash_files(root, paths, algorithms_of(present), progress=progress)
    compare(present, actual, name=name, faults=faults)


def compare(
    expected: Iterable[FileEntry], actual: Iterable[FileEntry], *, name: str, faults: Iterable[str] = ()
) -> None:
    """Compares what was found of files with what was committed; files that were not looked for do not matter.

    Args:
        expected: What was committed.
        actual: What was found.
        name: Names the checkpoint, and perhaps its place, in errors.
        faults: What is known to be wrong already.

    Raises:
        DataLossError: A file is another, or something was wrong already; it lists all such files.
    """
    by_path = {entry.path: entry for entry in actual}
    differences = (_difference(entry, by_path[entry.path]) for entry in expected if entry.path in by_path)
    all_faults = [*faults, *filter(None, differences)]
    if all_faults:
        raise DataLossError(f"{name} is damaged: {'; '.join(all_faults)}; restore from another checkpoint")


def _difference(expected: FileEntry, actual: FileEntry) -> str:
    if actual.size != expected.size:
        return f"{expected.path} has {actual.size} bytes instead of {expected.size}"
    differs = expected.digest and actual.digest != expected.digest
    return f"{expected.path} has another content" if differs else ""


def algorithms_of(files: Iterable[FileEntry]) -> dict[str, str]:
    """Returns by path how files were hashed, to compare them in the same way."""
    return {file.path: file.digest.partition(":")[0] for file in files if file.digest}


def make_directories(root: Path, paths: Iterable[str]) -> None:
    """Makes the directories among the paths, and those that the others are in."""
    for directory in {root / path if path.endswith("/") else (root / path).parent for path in paths}:
        directory.mkdir(parents=True, exist_ok=True)


def selected(directory: Path, resources: Mapping[str, int], selector: Selector | None) -> list[str]:
    """Returns the wanted paths, without the file of the metadata unless it is the script's own."""
    wanted = [path for path in resources if selector is None or selector(path)]
    if METADATA_FILE in wanted and not holds_own_metadata(directory):
        wanted.remove(METADATA_FILE)
    return wanted


def holds_own_metadata(directory: Path) -> bool:
    """Whether a script has a file of its own where the metadata would be written.

    One that tells ``steps_completed`` was written with an earlier checkpoint, whose copy the directory is.
    """
    path = directory / METADATA_FILE
    try:
        if path.stat().st_size > _MOST_METADATA_BYTES:
            return True
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (ValueError, OSError):
        return True
    return not (isinstance(content, dict) and "steps_completed" in content)


def write_metadata(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Writes the metadata beside the files, so that they tell what they are wherever they are taken.

    A file of the script's own of that name is left as it is: the metadata are kept in the registry too.

    Raises:
        TypeError: Something in it has no form in JSON.
    """
    content = metadata_text(metadata)
    if not holds_own_metadata(directory):
        (directory / METADATA_FILE).write_text(content)


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Returns metadata as the content of their file.

    Raises:
        TypeError: Something in it has no form in JSON.
    """
    try:
        return json.dumps(dict(metadata), indent=2) + "\n"
    except (TypeError, ValueError, RecursionError) as failure:
        raise TypeError(
            f"the metadata of a checkpoint must be plain data: {failure}; give numbers, text, lists and "
            "mappings, such as float(value) or value.tolist()"
        ) from failure


def sync_directories(root: Path, paths: Iterable[str]) -> None:
    """Makes sure that the names of files are on disk, not only their contents."""
    directories = {root, root.parent}
    for path in paths:
        directories.update((root / path).parents)
    for directory in sorted(directories):
        if directory == root.parent or directory.is_relative_to(root):
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
