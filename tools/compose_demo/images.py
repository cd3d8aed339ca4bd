"""The images of the demonstration: ours, and one that stands in for PostgreSQL's and for the S3 server's."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from image_build import build, rootfs, wheels
from image_build.commands import ROOT, run

PREFIX = "localhost/resolute-demo-"
STAND_INS = Path(__file__).with_name("stand_ins")
_OURS = (
    *("sdk", "launchers", "engines", "services", "compat", "protos/resolute", "pyproject.toml"),
    *("deploy/locks", "deploy/images", "tools/image_build"),
)
"""Files and folders of this repository that decide what is in the images of ours."""
_THEIRS = ("deploy/locks/debian-services.txt", "tools/image_build", str(STAND_INS.relative_to(ROOT)))
_PASSED_OVER = {"__pycache__", "node_modules", ".svelte-kit"}


@dataclass(frozen=True)
class Images:
    """Names of the images."""

    services: str
    trial: str
    stand_ins: str


@dataclass(frozen=True)
class _Recipe:
    """How an image is made.

    Attributes:
        base: The root file system that it begins with.
        ingredients: Files and folders of this repository that decide what is in it.
        install: Builds it upon its base, of which the first argument gives the id; returns its id.
    """

    base: rootfs.Rootfs
    ingredients: Sequence[str]
    install: Callable[[Callable[[], str], build.Options], str]


def build_missing(cache: Path) -> Images:
    """Builds the images that are not there for the files as they are now.

    Args:
        cache: Keeps root file systems between builds.

    Raises:
        SystemExit: A build failed; the message has its output.
    """
    recipes = {
        "trial-cpu": _Recipe(rootfs.TRIAL, _OURS, partial(build.install, "trial-cpu")),
        "services": _Recipe(rootfs.SERVICES, _OURS, partial(build.install, "services")),
        "stand-ins": _Recipe(rootfs.SERVICES, _THEIRS, _install_stand_ins),
    }
    names = {name: f"{PREFIX}{name}:{fingerprint(recipe.ingredients)}" for name, recipe in recipes.items()}
    missing = {name: recipe for name, recipe in recipes.items() if not _exists(names[name])}
    if missing:
        cache.mkdir(parents=True, exist_ok=True)
        for name, identifier in _build(missing, cache):
            run(["podman", "tag", identifier, names[name]])
            sys.stdout.write(f"built {names[name]}\n")
            sys.stdout.flush()
    return Images(names["services"], names["trial-cpu"], names["stand-ins"])


def _build(recipes: Mapping[str, _Recipe], cache: Path) -> Iterator[tuple[str, str]]:
    """Builds images, at the same time where none waits for another; gives the name and the id of each."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(thread_name_prefix="image") as pool:
        # Each root file system once, though two images begin with it.
        bases = {
            base: pool.submit(_bare, base, cache) for base in {recipe.base for recipe in recipes.values()}
        }
        options = build.Options(PREFIX, cache, build.APT_SOURCES, wheels.build_own(Path(scratch)))
        jobs = {
            name: pool.submit(recipe.install, bases[recipe.base].result, options)
            for name, recipe in recipes.items()
        }
        for name, job in jobs.items():
            yield name, job.result()


def _bare(kind: rootfs.Rootfs, cache: Path) -> str:
    return build.bare(kind, cache=cache, apt_sources=build.APT_SOURCES)


def _install_stand_ins(base: Callable[[], str], options: build.Options) -> str:
    """Installs PostgreSQL and the S3 server into one image, each with an entry of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch)
        for file in STAND_INS.iterdir():
            shutil.copy(file, context)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
        locked = ["--no-deps", "--require-hashes", f"--requirement={STAND_INS / 'wheels.txt'}"]
        run([*pip, *locked, f"--target={context / 'packages'}"])
        return build.buildah(
            context / "Containerfile",
            context,
            tag=f"{options.prefix}stand-ins",
            arguments={"BASE": base()},
        )


def fingerprint(ingredients: Sequence[str]) -> str:
    """Names the content of files and folders of this repository: an edited file has another name."""
    digest = hashlib.sha256()
    for path in sorted(_files(ingredients)):
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _files(ingredients: Sequence[str]) -> Iterator[Path]:
    for name in ingredients:
        if (ROOT / name).is_file():
            yield ROOT / name
        for folder, below, files in os.walk(ROOT / name):
            below[:] = [one for one in below if one not in _PASSED_OVER]
            yield from (Path(folder, file) for file in files)


def _exists(image: str) -> bool:
    listed = run(["podman", "images", "--format={{.Repository}}:{{.Tag}}"])
    return image in listed.split()
