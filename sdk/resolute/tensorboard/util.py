"""Names of TensorBoard files that several ranks write."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TypeVar

PathT = TypeVar("PathT", bound=PurePath)

_PROFILES = re.compile(
    r"(?P<extension>"
    r"(\.\d+)?\.pt\.trace\.json(\.gz)?"
    r"|\.trace\.json(\.gz)?"
    r"|\.memory_profile\.json\.gz"
    r"|\.(xplane|input_pipeline|overview_page|tensorflow_stats|kernel_stats|memory_profile|op_profile)"
    r"(\.pb|\.json)"
    r")$"
)
"""How the files of profilers end; torch has a time before."""


def get_rank_aware_path(path: PathT, rank: int) -> PathT:
    """Returns a path that is this rank's own, for files that the profilers of all ranks give the same name.

    Args:
        path: Path of a file.
        rank: The rank.

    Returns:
        The path with ``#`` and the rank before the extension; other files keep theirs.
    """
    match = _PROFILES.search(path.name)
    if match is None:
        return path
    return path.with_name(f"{path.name[: match.start()]}#{rank}{match['extension']}")
