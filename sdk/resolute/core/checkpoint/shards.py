"""Merges the files and the metadata of many ranks into one checkpoint.

The functions work on the ranks' reports and read no files. A resource is a path within the checkpoint with
its size in bytes; directories end in ``/`` and have size 0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

DirectoryId = tuple[int, int]
"""What tells two names of one directory: ``st_dev`` and ``st_ino``."""


class ResourceConflictError(RuntimeError):
    """Ranks have different content for one path of a checkpoint."""


class MetadataConflictError(RuntimeError):
    """Ranks give different values to one key of a checkpoint's metadata."""


def uploading_ranks(directories: Sequence[DirectoryId | None], selective: Sequence[bool]) -> list[int]:
    """Returns the ranks that upload files, in order.

    Ranks that name the same directory, and want all of it, would upload the same files: the lowest of them
    does. A rank with a selector uploads its own selection.

    Args:
        directories: Each rank's directory; None for a rank without one.
        selective: Whether each rank has a selector.
    """
    uploaders: list[int] = []
    taken: set[DirectoryId] = set()
    for rank, (directory, selects) in enumerate(zip(directories, selective, strict=True)):
        if directory is None or (not selects and directory in taken):
            continue
        uploaders.append(rank)
        if not selects:
            taken.add(directory)
    return uploaders


def merge_resources(
    all_resources: Sequence[Mapping[str, int]],
) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Puts the resources of all ranks together.

    Returns:
        All of them (the lowest rank's size where several have a path), and the conflicts: paths that are a
        file on one rank and anything on another, with the ranks that have them. Directories do not conflict.
        A file conflicts with a directory of its name, also one that only follows from another's longer paths.
    """
    merged: dict[str, int] = {}
    holders: dict[str, set[int]] = {}
    file_holders: dict[str, set[int]] = {}
    for rank, resources in enumerate(all_resources):
        for path, size in resources.items():
            merged.setdefault(path, size)
            name = path.rstrip("/")
            if not path.endswith("/"):
                file_holders.setdefault(name, set()).add(rank)
            for taken in (name, *_parents(name)):
                holders.setdefault(taken, set()).add(rank)
    conflicts = {name: sorted(holders[name]) for name in file_holders if len(holders[name]) > 1}
    return merged, conflicts


def assign_uploads(
    all_resources: Sequence[Mapping[str, int]],
    digests: Sequence[Mapping[str, str]],
) -> list[list[str]]:
    """Returns the paths that each rank uploads.

    Args:
        all_resources: The resources of each rank.
        digests: For each rank the digests of its files that `merge_resources` found in conflict.

    Returns:
        For each rank its paths, in order. What several ranks have is the lowest rank's.

    Raises:
        ResourceConflictError: Files of one name differ, or a file is a directory elsewhere.
    """
    _, conflicts = merge_resources(all_resources)
    refused = {
        path: ranks
        for path, ranks in conflicts.items()
        if not _same_file(path, ranks, all_resources, digests)
    }
    if refused:
        raise ResourceConflictError(
            f"refusing to upload with files conflicts: {_describe_conflicts(refused)}. "
            "Write different files under different names, or choose with a selector"
        )
    taken: set[str] = set()
    shares: list[list[str]] = []
    for resources in all_resources:
        share = sorted(path for path in resources if path not in taken)
        taken.update(share)
        shares.append(share)
    return shares


def merge_metadata(
    all_metadata: Sequence[Mapping[str, Any] | None],
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Puts the metadata of all ranks together, mapping by mapping.

    Returns:
        The union (the lowest rank's value where they differ), and the conflicts: keys such as ``/a/b`` that
        do not have the same value everywhere, with the ranks that have them.
    """
    conflicts: dict[str, list[int]] = {}
    given = [(rank, metadata) for rank, metadata in enumerate(all_metadata) if metadata is not None]
    return _merge(given, "", conflicts), conflicts


def merged_metadata(all_metadata: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The union of the metadata of all ranks.

    Raises:
        MetadataConflictError: Some key has different values.
    """
    merged, conflicts = merge_metadata(all_metadata)
    if conflicts:
        raise MetadataConflictError(
            f"refusing to upload with metadata conflicts: {_describe_conflicts(conflicts)}. "
            "Give each rank's own values a key of their own, or pass metadata on one rank only"
        )
    return merged


def _merge(
    given: Sequence[tuple[int, Mapping[str, Any]]], prefix: str, conflicts: dict[str, list[int]]
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    keys = dict.fromkeys(key for _, metadata in given for key in metadata)
    for key in keys:
        path = f"{prefix}/{key}"
        values = [(rank, metadata[key]) for rank, metadata in given if key in metadata]
        mappings = [(rank, value) for rank, value in values if isinstance(value, Mapping)]
        first = values[0][1]
        if isinstance(first, Mapping):
            merged[key] = _merge(mappings, path, conflicts)
            agree = len(mappings) == len(values)
        else:
            merged[key] = first
            agree = all(_same(first, value) for _, value in values)
        if not agree:
            conflicts[path] = [rank for rank, _ in values]
    return merged


def _same(left: Any, right: Any) -> bool:
    # In JSON, true is not 1; and a NaN is the same as another, whatever arithmetic says.
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right) or (left != left and right != right)  # noqa: PLR0124 - NaN


def _same_file(
    path: str,
    ranks: Sequence[int],
    all_resources: Sequence[Mapping[str, int]],
    digests: Sequence[Mapping[str, str]],
) -> bool:
    if any(path not in all_resources[rank] for rank in ranks):
        return False
    return len({digests[rank][path] for rank in ranks}) == 1


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _describe_conflicts(conflicts: Mapping[str, Sequence[int]]) -> str:
    return "; ".join(
        f"{path} on ranks {', '.join(map(str, ranks))}" for path, ranks in sorted(conflicts.items())
    )
