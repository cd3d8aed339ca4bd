"""Merges values of an experiment into DeepSpeed's config."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def overwrite_deepspeed_config(
    base_ds_config: str | os.PathLike[str] | dict[str, Any], source_ds_dict: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a config of DeepSpeed in which some values are replaced or added.

    Args:
        base_ds_config: The config: a dict, which stays as it is, or the path of a JSON file.
        source_ds_dict: What to replace. A dict in it goes into the section of its name; anything else takes
            the place of what was there.

    Raises:
        TypeError: ``base_ds_config`` is neither a path nor a dict.
        ValueError: The file names a key twice, or is no JSON object.
        OSError: The file cannot be read.
    """
    if isinstance(base_ds_config, (str, os.PathLike)):
        return _merged(_read(Path(base_ds_config)), source_ds_dict)
    if not isinstance(base_ds_config, dict):
        raise TypeError(
            f"base_ds_config is a {type(base_ds_config).__name__}; the path of a JSON file or a dict was "
            "expected"
        )
    return _merged(base_ds_config, source_ds_dict)


def _merged(base: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    merged = {key: _merged(value, {}) if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in source.items():
        section = merged.get(key)
        if isinstance(value, Mapping):
            merged[key] = _merged(section if isinstance(section, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _read(path: Path) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{path} has more than one value of {', '.join(twice)}: keep one of each")
        return dict(pairs)

    config = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unique)
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds a {type(config).__name__}; a JSON object was expected")  # noqa: TRY004
    return config
