"""An overlay: a virtual environment that sees the packages of another one and installs beside them."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute_launch.overlays.base import BaseEnvironment
from resolute_launch.overlays.scripts import copy_scripts

_SEES = "zzz-resolute-base.pth"
"""Adds what lies below to the path of modules; last by its name, so that what an overlay has comes first."""
_PIP_CONFIG = "pip.conf"


@dataclass(frozen=True, slots=True)
class Layer:
    """The packages that a startup hook has installed, kept read-only for other runs."""

    path: Path
    """A copy of the overlay that it was."""
    made_in: Path
    """Where that overlay was: its scripts name it."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The overlay of one run."""

    path: Path
    """Its directory."""
    base: BaseEnvironment
    """The environment below."""
    layer: Layer | None
    """What lies between the two, if anything does."""

    @classmethod
    def create(cls, path: Path, *, base: BaseEnvironment, layer: Layer | None) -> Overlay:
        """Creates an empty overlay.

        Args:
            path: Its directory, which is not there yet.
            base: The environment of this process.
            layer: What another run's hook has installed over the same environment; None for nothing.

        Raises:
            OSError: It cannot be created.
        """
        overlay = cls(path, base, layer)
        venv.EnvBuilder(symlinks=True).create(path)
        lines = (
            f"import site; site.addsitedir({name!r}, locals().get('known_paths'))\n" for name in overlay.below
        )
        (overlay.packages / _SEES).write_text("".join(lines))
        if layer is not None:
            scripts = layer.path / "bin"
            copy_scripts(scripts, overlay.scripts, made_in=layer.made_in / "bin", python=overlay.python)
        copy_scripts(base.scripts, overlay.scripts, made_in=base.scripts, python=overlay.python)
        config = Path(sys.prefix, _PIP_CONFIG)
        if config.is_file():
            shutil.copyfile(config, path / _PIP_CONFIG)
        return overlay

    @property
    def scripts(self) -> Path:
        """Directory of its interpreter and of its scripts."""
        return self.path / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.scripts / "python3"

    @property
    def packages(self) -> Path:
        """Directory of the packages that are installed in it."""
        return _packages(self.path)

    @property
    def below(self) -> tuple[str, ...]:
        """Directories of packages that it sees and does not change."""
        return (*((str(_packages(self.layer.path)),) if self.layer else ()), *self.base.packages)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Returns variables with which pip, uv and scripts use it in place of the environment below.

        Args:
            variables: Those of the run.
        """
        ours = [self.scripts, *([self.layer.path / "bin"] if self.layer else [])]
        entries = variables["PATH"].split(os.pathsep)
        place = position(self.base, entries)
        assert place is not None, "an overlay is created only where it was requested"
        entries[place:place] = map(str, ours)
        return {
            **variables,
            "PATH": os.pathsep.join(entries),
            "VIRTUAL_ENV": str(self.path),
            "RESOLUTE_OVERLAY": str(self.python),
            "RESOLUTE_OVERLAY_BASE": f"{sys.prefix} {sys.version}",
        }


def position(base: BaseEnvironment, entries: list[str]) -> int | None:
    """Where in a ``PATH`` an environment is; None if it is not."""
    wanted = base.scripts.resolve()
    return next((place for place, entry in enumerate(entries) if Path(entry).resolve() == wanted), None)


def _packages(path: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "posix_prefix", {"base": str(path), "platbase": str(path)}))
