"""Shortens nested mappings to their first values, for lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def first_leaves(tree: Mapping[str, Any], *, most: int) -> tuple[dict[str, Any], int]:
    """Cuts a tree down to its first leaves, in the order of the names of each level.

    Args:
        tree: A mapping whose values may be mappings again; all else, lists too, are leaves.
        most: Leaves that stay, zero or more.

    Returns:
        What stays, and how many leaves do not.
    """
    kept: dict[str, Any] = {}
    omitted = 0
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, Mapping):
            inner, left_out = first_leaves(value, most=most)
            most -= leaf_count(inner)
            omitted += left_out
            if inner:
                kept[name] = inner
        elif most > 0:
            kept[name] = value
            most -= 1
        else:
            omitted += 1
    return kept, omitted


def leaf_count(tree: Mapping[str, Any]) -> int:
    """How many leaves a tree has."""
    return sum(leaf_count(value) if isinstance(value, Mapping) else 1 for value in tree.values())
