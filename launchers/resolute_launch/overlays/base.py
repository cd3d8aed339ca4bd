"""The environment of this process, which overlays extend and must not change."""

from __future__ import annotations

import os
import site
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BaseEnvironment:
    """An interpreter with its packages."""

    scripts: Path
    """Directory of its interpreter and of its scripts."""
    packages: tuple[str, ...]
    """Directories of its packages, in the order of ``sys.path``."""
    names: frozenset[str]
    """What lies in them: an installed package names its version there."""

    @classmethod
    def look(cls) -> BaseEnvironment:
        """Describes the environment of this process, as it is now."""
        # An overlay knows no directory of the user's packages, so that they are named like the others.
        user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
        packages = tuple(name for name in (*user, *site.getsitepackages()) if Path(name).is_dir())
        names = {f"{place}/{name}" for place in packages for name in os.listdir(place)}  # noqa: PTH208 - names alone
        return cls(
            scripts=Path(sys.executable).parent,
            packages=packages,
            names=frozenset(name for name in names if not name.endswith("/__pycache__")),
        )
