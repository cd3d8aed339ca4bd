"""Formats numbers of bytes for people."""

from __future__ import annotations


def human_size(size: float) -> str:
    """Writes a number of bytes for people: ``95.0 MiB``."""
    amount, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
