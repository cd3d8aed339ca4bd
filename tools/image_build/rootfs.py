"""Root file systems of Debian packages, as images begin with: the same bytes for the same locked versions."""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from image_build.commands import ROOT, run

RELEASE = "bookworm"
USER = 10001
"""Whom services and trials run as."""
_NOT_NEEDED = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
)
_DPKG = (
    *(f"path-exclude={path}" for path in _NOT_NEEDED),
    # Half-built root file systems are thrown away: nothing need be on the disk before the next package.
    "force-unsafe-io",
)
_PREPARE = f"""\
set -eu
echo 'resolute:x:{USER}:{USER}::/var/lib/resolute:/usr/sbin/nologin' >> "$1/etc/passwd"
echo 'resolute:x:{USER}:' >> "$1/etc/group"
# Compiled anew, because images have the times of files set to one date.
export PYTHONHASHSEED=0
chroot "$1" python3 -m compileall -q -f -j 1 --invalidation-mode unchecked-hash \\
    /usr/lib/python3 /usr/lib/python3.11 /usr/share/python3 || true  # some of its tests are no valid modules
# Sources, keys to them and settings of the machine that builds; logs and caches with its dates.
rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/etc/apt/auth.conf*
rm -rf "$1"/etc/apt/apt.conf.d/99mmdebstrap
rm -rf "$1"/var/cache/* "$1"/var/log/* "$1"/var/lib/apt/lists/* "$1"/run/* "$1"/tmp/*
: > "$1/etc/hostname"
: > "$1/etc/resolv.conf"
"""


@dataclass(frozen=True)
class Rootfs:
    """What a root file system has."""

    name: str
    variant: str
    """mmdebstrap's: ``essential`` has no apt."""
    packages: tuple[str, ...]

    @property
    def lock(self) -> Path:
        """Each package with its version."""
        return ROOT / f"deploy/locks/debian-{self.name}.txt"


SERVICES = Rootfs("services", "essential", ("ca-certificates", "libstdc++6", "python3", "tini", "tzdata"))
TRIAL = Rootfs(
    "trial", "apt", ("ca-certificates", "git", "openssh-client", "python3", "python3-venv", "tini", "tzdata")
)


def make(rootfs: Rootfs, cache: Path, *, sources: Path, locked: bool) -> Path:
    """Returns the file system as a tar; makes it if the cache has none for the lock.

    Args:
        rootfs: Which one.
        cache: Where earlier ones lie.
        sources: File or folder with apt's sources; it stays outside.
        locked: Whether it must have the versions of the lock. Otherwise the differences are printed to the
            standard error.

    Raises:
        SystemExit: It must have the versions of the lock, and the archive has others.
    """
    recipe = repr((rootfs, _PREPARE, _DPKG, locked, rootfs.lock.read_text() if rootfs.lock.exists() else ""))
    path = cache / f"debian-{rootfs.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.tar"
    if not path.exists():
        made = bootstrap(rootfs, cache, sources=sources)
        check(rootfs, installed(made), locked=locked)
        made.rename(path)
    return path


def bootstrap(rootfs: Rootfs, folder: Path, *, sources: Path) -> Path:
    """Makes the file system of what apt's sources have now."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"debian-{rootfs.name}.new.tar"
    listed = (
        sorted(sources.glob("*.sources")) + sorted(sources.glob("*.list")) if sources.is_dir() else [sources]
    )
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as hook:
        hook.write(_PREPARE)
        hook.flush()
        options = [f"--dpkgopt={option}" for option in _DPKG]
        run(
            [
                "mmdebstrap",
                "--quiet",
                f"--variant={rootfs.variant}",
                f"--include={','.join(rootfs.packages)}",
                *options,
                f'--customize-hook=sh {hook.name} "$1"',
                RELEASE,
                made,
                *listed,
            ],
            environment={"PYTHONHASHSEED": "0"},
        )
    return made


def installed(tar: Path) -> Mapping[str, str]:
    """Packages of a file system, with their versions."""
    with tarfile.open(tar) as archive:
        status = archive.extractfile("./var/lib/dpkg/status")
        assert status is not None
        return packages_of(status.read().decode())


def packages_of(status: str) -> dict[str, str]:
    """Packages that dpkg's status lists as installed, with their versions."""
    packages = {}
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.+)$", paragraph, re.MULTILINE))
        if fields.get("Status") == "install ok installed":
            packages[fields["Package"]] = fields["Version"]
    return dict(sorted(packages.items()))


def check(rootfs: Rootfs, packages: Mapping[str, str], *, locked: bool) -> None:
    """Compares versions with the lock, and prints how they differ.

    Raises:
        SystemExit: They differ, and must not; the message says how.
    """
    wanted = read_lock(rootfs.lock)
    differences = [
        f"  {name}: locked {wanted.get(name, 'not at all')}, found {packages.get(name, 'none')}"
        for name in sorted({*wanted, *packages})
        if wanted.get(name) != packages.get(name)
    ]
    if not differences:
        return
    listed = "\n".join([f"apt's sources have other versions than {rootfs.lock.name}:", *differences])
    if locked:
        remedy = "run `make lock-images` to take them, or name a snapshot that has these by --apt-sources"
        raise SystemExit(f"{listed}\n{remedy}")
    sys.stderr.write(f"{listed}\nthe image has what was found\n")


def read_lock(path: Path) -> dict[str, str]:
    """Reads packages and their versions."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: version for name, _, version in (line.partition("=") for line in lines)}


def write_lock(rootfs: Rootfs, packages: Mapping[str, str]) -> None:
    """Writes packages and their versions."""
    head = f"# Debian {RELEASE}: what the images on {rootfs.name} have. `make lock-images` writes it.\n"
    rootfs.lock.write_text(head + "".join(f"{name}={version}\n" for name, version in packages.items()))
