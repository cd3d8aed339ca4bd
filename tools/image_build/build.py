"""Builds the images of deploy/images: ``python tools/image_build/build.py services trial-cpu``.

Debian's packages and wheels are fetched by this machine's apt and pip, with their settings, and checked by
the locks of deploy/locks. The build itself uses no package server, so that nothing of these settings can
reach an image. The same checkout and locks give the same image id. Each image has a bill of materials beside
it, in the output folder.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from image_build import bom, rootfs, wheels
from image_build.commands import DATE, ROOT, run

LOCKS = ROOT / "deploy/locks"
SOURCES = ROOT / "deploy/images"


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
    """What the command line says."""

    prefix: str
    output: Path
    cache: Path
    apt_sources: Path


def build(name: str, options: Options) -> str:
    """Builds an image, and what it is based on; returns its id."""
    image = IMAGES[name]
    base = base_of(image, options)
    with tempfile.TemporaryDirectory() as scratch:
        context, folder = Path(scratch) / "context", Path(scratch) / "wheels"
        context.mkdir()
        folder.mkdir()
        shutil.copy(SOURCES / "install.sh", context)
        shutil.copy(LOCKS / image.lock, context)
        wheels.fetch(LOCKS / image.lock, folder)
        wheels.fetch(LOCKS / "pip.txt", folder)
        wheels.build_own(folder)
        arguments = {"BASE": base} | (
            {"LOCK": image.lock} if image.containerfile == "trial.Containerfile" else {}
        )
        return buildah(
            options.prefix + name, SOURCES / image.containerfile, context, arguments=arguments, wheels=folder
        )


def base_of(image: Image, options: Options) -> str:
    """Makes what an image is based on; returns the id of that."""
    if isinstance(image.base, str):
        return build(image.base, options)
    tar = rootfs.make(image.base, options.cache, sources=options.apt_sources)
    return from_tar(tar, f"{options.prefix}debian-{image.base.name}")


def from_tar(tar: Path, tag: str) -> str:
    """Makes an image of a root file system alone; returns its id."""
    # Beside the tar, for a link to it does not reach another file system.
    with tempfile.TemporaryDirectory(dir=tar.parent) as scratch:
        context = Path(scratch)
        (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
        (context / "root.tar").hardlink_to(tar)
        return buildah(tag, context / "Containerfile", context)


def buildah(
    tag: str,
    containerfile: Path,
    context: Path,
    *,
    arguments: dict[str, str] | None = None,
    wheels: Path | None = None,
) -> str:
    """Builds by a Containerfile; returns the id. No time and no name of this machine goes into it."""
    given = [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    mounts = [f"--volume={wheels}:/wheels:ro"] if wheels else []
    label = f"--label=org.opencontainers.image.version={version()}"
    said = run(
        ["buildah", "build", "--quiet", "--pull-never", "--layers=false", f"--timestamp={DATE}",
         "--identity-label=false", label, *given, *mounts, f"--file={containerfile}", f"--tag={tag}", context]
    )  # fmt: skip
    return said.strip().splitlines()[-1]


def version() -> str:
    """The version of this checkout."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def write_bom(name: str, identifier: str, options: Options) -> Path:
    """Writes the bill of materials of an image."""
    container = run(["buildah", "from", "--pull-never", identifier]).strip()
    try:
        root = Path(run(["buildah", "mount", container]).strip())
        text = bom.document(root, image=options.prefix + name, identifier=identifier)
    finally:
        run(["buildah", "rm", container])
    path = options.output / f"{name}.cdx.json"
    path.write_text(text)
    return path


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
    parser.add_argument(
        "--apt-sources", type=Path, default=Path("/etc/apt/sources.list.d"), help="[%(default)s]"
    )
    given = parser.parse_args()
    options = Options(given.prefix, given.output, given.cache, given.apt_sources)
    for folder in (options.output, options.cache):
        folder.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        identifier = build(name, options)
        listed = write_bom(name, identifier, options)
        sys.stdout.write(f"{options.prefix}{name} {identifier} {listed}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
