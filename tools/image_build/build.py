"""Builds the images of deploy/images: ``python tools/image_build/build.py services trial-cpu``.

Debian's packages and wheels are fetched by this machine's apt and pip, with their settings, and checked by
the locks of deploy/locks; other versions of Debian's are taken and named, unless --locked forbids them. The
build itself uses no package server, so that nothing of these settings can reach an image. The same checkout
and versions give the same image id. Each image has a bill of materials beside
it, in the output folder.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from image_build import rootfs, wheels
from image_build.commands import DATE, ROOT, run

LOCKS = ROOT / "deploy/locks"
SOURCES = ROOT / "deploy/images"
APT_SOURCES = Path("/etc/apt/sources.list.d")
"""Where this machine has apt's sources."""


@dataclass(frozen=True)
class Image:
    """How an image is made."""

    containerfile: str
    lock: str
    base: rootfs.Rootfs | str
    """A root file system, or another image."""


IMAGES = {
    "services": Image("services.Containerfile", "services.txt", rootfs.SERVICES),
    "local-trials": Image("local-trials.Containerfile", "trial-cpu.txt", "services"),
    "trial-cpu": Image("trial.Containerfile", "trial-cpu.txt", rootfs.TRIAL),
    "trial-cuda": Image("trial.Containerfile", "trial-cuda.txt", rootfs.TRIAL),
}


@dataclass(frozen=True)
class Options:
    """What all images of a build have in common.

    Attributes:
        prefix: What their names begin with.
        cache: Keeps root file systems.
        apt_sources: File or folder with apt's sources.
        own: Resolute's wheel.
        locked: Whether Debian's packages must have the versions of the lock, as those of a release do.
    """

    prefix: str
    cache: Path
    apt_sources: Path
    own: Path
    locked: bool = False


def build(name: str, options: Options) -> str:
    """Builds an image, and what it is based on; returns its id."""
    return install(name, lambda: base_of(IMAGES[name], options), options)


def install(name: str, base: Callable[[], str], options: Options) -> str:
    """Installs upon its base what an image has by its lock; returns the image's id.

    Args:
        name: Which image.
        base: Gives the id of the base; it is asked when all wheels are there.
        options: What all images of a build have in common.
    """
    image = IMAGES[name]
    with tempfile.TemporaryDirectory() as scratch:
        context, folder = Path(scratch) / "context", Path(scratch) / "wheels"
        context.mkdir()
        folder.mkdir()
        shutil.copy(SOURCES / "install.sh", context)
        shutil.copy(LOCKS / image.lock, context)
        wheels.fetch(LOCKS / image.lock, folder)
        wheels.fetch(LOCKS / "pip.txt", folder)
        shutil.copy(options.own, folder)
        arguments = {"BASE": base()} | (
            {"LOCK": image.lock} if image.containerfile == "trial.Containerfile" else {}
        )
        return buildah(
            SOURCES / image.containerfile,
            context,
            tag=options.prefix + name,
            arguments=arguments,
            wheels=folder,
        )


def base_of(image: Image, options: Options) -> str:
    """Makes what an image is based on; returns the id of that."""
    if isinstance(image.base, str):
        return build(image.base, options)
    return bare(image.base, cache=options.cache, apt_sources=options.apt_sources, locked=options.locked)


def bare(kind: rootfs.Rootfs, *, cache: Path, apt_sources: Path, locked: bool = False) -> str:
    """Makes an image of a root file system alone; returns its id.

    It has no name: an image keeps the name of what it is based on, and would be another by another name.
    """
    tar = rootfs.make(kind, cache, sources=apt_sources, locked=locked)
    # Beside the tar, for a link to it does not reach another file system.
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        context = Path(scratch)
        (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
        (context / "root.tar").hardlink_to(tar)
        return buildah(context / "Containerfile", context)


def buildah(
    containerfile: Path,
    context: Path,
    *,
    tag: str | None = None,
    arguments: dict[str, str] | None = None,
    wheels: Path | None = None,
) -> str:
    """Builds by a Containerfile; returns the id. No time and no name of this machine goes into it."""
    given = [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    mounts = [f"--volume={wheels}:/wheels:ro"] if wheels else []
    named = [] if tag is None else [f"--tag={tag}"]
    label = f"--label=org.opencontainers.image.version={version()}"
    output = run(
        ["buildah", "build", "--quiet", "--pull-never", "--layers=false", f"--timestamp={DATE}",
         "--identity-label=false", label, *given, *mounts, *named, f"--file={containerfile}", context]
    )  # fmt: skip
    return output.strip().splitlines()[-1]


def version() -> str:
    """The version of this checkout."""
    match = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def write_bom(image: str, identifier: str, path: Path) -> None:
    """Writes the bill of materials of an image."""
    # Only this wants the library that writes them.
    from image_build import bom

    container = run(["buildah", "from", "--pull-never", identifier]).strip()
    try:
        root = Path(run(["buildah", "mount", container]).strip())
        path.write_text(bom.document(root, image=image, identifier=identifier))
    finally:
        run(["buildah", "rm", container])


def main() -> None:
    """Builds the images that the command line names, and prints their ids."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=[*IMAGES], metavar="NAME", help=", ".join(IMAGES))
    parser.add_argument(
        "--prefix", default="localhost/resolute-", help="what their names begin with [%(default)s]"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build/images", help="for bills of materials")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache/images", help="keeps root file systems")
    parser.add_argument("--apt-sources", type=Path, default=APT_SOURCES, help="[%(default)s]")
    parser.add_argument(
        "--locked", action="store_true", help="fail where apt has other versions than the lock"
    )
    given = parser.parse_args()
    for folder in (given.output, given.cache):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        own = wheels.build_own(Path(scratch))
        options = Options(given.prefix, given.cache, given.apt_sources, own, locked=given.locked)
        for name in given.names:
            identifier = build(name, options)
            listed = given.output / f"{name}.cdx.json"
            write_bom(given.prefix + name, identifier, listed)
            sys.stdout.write(f"{given.prefix}{name} {identifier} {listed}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
