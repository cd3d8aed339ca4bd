"""``environment.secrets`` of a config: the secrets that a run is given, each with its variable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a secret may be called: its value is a file of that name."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SecretReference:
    """One entry of the list: ``NAME``, or ``VARIABLE=NAME``."""

    name: str
    """Name of the secret."""
    variable: str = ""
    """The variable of the script that holds it too; empty for a file alone."""

    @classmethod
    def read(cls, entry: str) -> SecretReference:
        """Reads an entry.

        Raises:
            ValueError: It is neither.
        """
        variable, equals, name = entry.rpartition("=")
        if not NAME.fullmatch(name) or (equals and not _VARIABLE.fullmatch(variable)):
            raise ValueError(entry)
        return cls(name, variable)


def secret_references(config: Mapping[str, Any]) -> tuple[SecretReference, ...]:
    """Reads the secrets that a whole, checked config names."""
    entries = (config.get("environment") or {}).get("secrets") or ()
    return tuple(SecretReference.read(entry) for entry in entries)
