"""Small functions that older scripts import from ``determined.util``."""

from __future__ import annotations

import enum
import errno
import inspect
import json
import math
import numbers
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from determined._masked_config import mask_checkpoint_storage, mask_config_dict
from resolute.runtime.batch_sizes import calculate_batch_sizes

__all__ = [
    "calculate_batch_sizes",
    "download_gcs_blob_with_backoff",
    "filter_duplicates",
    "force_create_symlink",
    "get_member_func",
    "has_param",
    "humanize_float",
    "is_numerical_scalar",
    "is_overridden",
    "json_encode",
    "make_timing_log",
    "mask_checkpoint_storage",
    "mask_config_dict",
    "merge_dicts",
    "rmtree_nfs_safe",
]
_RMTREE_ATTEMPTS = 5


def download_gcs_blob_with_backoff(blob: Any, n_retries: int = 32, max_backoff: int = 32) -> bytes:
    """Reads an object of Google Cloud Storage and tries again, later each time, when that fails.

    Args:
        blob: A ``google.cloud.storage.Blob``.
        n_retries: Most attempts.
        max_backoff: Longest wait between two of them, in seconds.

    Raises:
        TypeError: ``blob`` is something else.
        RuntimeError: Every attempt failed.
    """
    if not callable(getattr(blob, "download_as_bytes", None)):
        raise TypeError(f"a google.cloud.storage.Blob was expected, not a {type(blob).__name__}")
    wait = random.Random()  # noqa: S311 - no secret; the script's own random state stays as it is
    failure: Exception | None = None
    for attempt in range(n_retries):
        try:
            return bytes(blob.download_as_bytes())
        except Exception as error:  # noqa: BLE001 - the library and the network fail in many ways
            failure = error
            if attempt + 1 < n_retries:
                time.sleep(min(2**attempt + wait.random(), max_backoff))
    raise RuntimeError(f"Max retries exceeded: {n_retries} attempts to read the blob failed") from failure


def is_numerical_scalar(n: Any) -> bool:
    """Returns whether a value is one number: of Python, or of an array library. Booleans are none."""
    if isinstance(n, numbers.Number):
        return not isinstance(n, bool)
    return getattr(n, "shape", None) == () and getattr(getattr(n, "dtype", None), "kind", "") in set("fciu")


def filter_duplicates(in_list: Sequence[Any]) -> list[Any]:
    """Returns the values that are in a list more than once, each once."""
    counts = Counter(in_list)
    return [value for value in counts if counts[value] > 1]


def has_param(fn: Callable[..., Any], name: str, pos: int | None = None) -> bool:
    """Returns whether a function has a parameter.

    Args:
        fn: The function.
        name: Name of the parameter.
        pos: Its position among the positional ones, which counts too whatever the name there; None for any.
    """
    parameters = inspect.signature(fn).parameters
    if name in parameters:
        return True
    positional = [
        parameter
        for parameter in parameters.values()
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    return pos is not None and pos < len(positional)


def get_member_func(obj: Any, func_name: str) -> Callable[..., Any] | None:
    """Returns a method of an object; None if it has none of that name."""
    member = getattr(obj, func_name, None)
    return member if callable(member) else None


def force_create_symlink(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Makes a symbolic link, in the place of a file or link that has its name.

    Args:
        src: What it leads to.
        dst: The link.

    Raises:
        OSError: The link cannot be made; among others, its name is that of a directory.
    """
    link = Path(dst)
    try:
        link.symlink_to(src)
    except FileExistsError:
        link.unlink()
        link.symlink_to(src)


def rmtree_nfs_safe(path: str | os.PathLike[str]) -> None:
    """Removes a directory with what is in it, also where NFS shows files for a while that are open still.

    Raises:
        OSError: It cannot be removed; after five attempts it was not empty.
    """
    for attempt in range(1, _RMTREE_ATTEMPTS + 1):
        try:
            shutil.rmtree(path)
        except OSError as failure:
            if failure.errno != errno.ENOTEMPTY or attempt == _RMTREE_ATTEMPTS:
                raise
        else:
            return


def humanize_float(num: float) -> float:
    """Rounds a number to three digits that count: large numbers to whole ones."""
    return float(f"{num:.3g}") if 0 < abs(num) < 1000 else float(round(num))


def make_timing_log(verb: str, duration: float, num_inputs: int, num_batches: int) -> str:
    """Writes how fast something was done, for logs."""
    records, batches = humanize_float(num_inputs / duration), humanize_float(num_batches / duration)
    return (
        f"{verb}: {num_inputs} records in {humanize_float(duration)}s ({records} records/s), "
        f"in {num_batches} batches ({batches} batches/s)"
    )


def is_overridden(full_method: Callable[..., Any], parent_class: type) -> bool:
    """Returns whether a method is another than that of a parent class.

    Args:
        full_method: The method, of an object or of a class.
        parent_class: The class that may have defined it.
    """
    name = getattr(full_method, "__name__", "")
    return getattr(parent_class, name, None) is not getattr(full_method, "__func__", full_method)


def json_encode(obj: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """Writes JSON that every reader takes.

    Numbers that JSON lacks become the texts ``NaN``, ``Infinity`` and ``-Infinity``, arrays become lists and
    members of enumerations their names; of an object with ``__json__()`` it is what that returns.

    Args:
        obj: What to write.
        indent: Spaces of each level; None for one line.
        sort_keys: Whether keys are sorted.

    Raises:
        TypeError: Something in it has no form in JSON.
    """
    return json.dumps(_plain(obj), indent=indent, sort_keys=sort_keys)


def merge_dicts(dict1: Mapping[str, Any], dict2: Mapping[str, Any]) -> dict[str, Any]:
    """Returns both dicts as one, and likewise the dicts in them; elsewhere the second has its way."""
    merged = dict(dict1)
    for key, value in dict2.items():
        before = merged.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[key] = merge_dicts(before, value) if both else value  # type: ignore[arg-type]
    return merged


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    for method in ("__json__", "tolist"):  # a form of its own, else an array of numbers
        convert = getattr(value, method, None)
        if callable(convert):
            return _plain(convert())
    return value
