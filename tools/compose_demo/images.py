"""The images of the demonstration: ours, and one that stands in for PostgreSQL's and for the S3 server's."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from image_build import build, rootfs
from image_build.commands import ROOT, run

PREFIX = "localhost/resolute-demo-"
STAND_INS = Path(__file__).with_name("stand_ins")
_STAND_INS_ROOT = rootfs.Rootfs("stand-ins", "essential", ("postgresql-15",))
_OURS = (
    *("sdk", "launchers", "services", "compat", "protos/resolute", "pyproject.toml"),
    *("deploy/locks", "deploy/images", "tools/image_build"),
)
"""Files and folders of this repository that decide what is in the images of ours."""
_PASSED_OVER = {"__pycache__", "node_modules", ".svelte-kit"}


@dataclass(frozen=True)
class Images:
    """Names of the images."""

    services: str
    trial: str
    stand_ins: str


def build_missing(cache: Path) -> Images:
    """Builds the images that are not there for the files as they are now, two at a time.

    Args:
        cache: Keeps root file systems between builds.

    Raises:
        SystemExit: A build failed; the message has what it said.
    """
    builders = {"trial-cpu": _build_ours, "services": _build_ours, "stand-ins": _build_stand_ins}
    ours, theirs = fingerprint(_OURS), fingerprint(("tools/image_build", str(STAND_INS.relative_to(ROOT))))
    tags = {"trial-cpu": ours, "services": ours, "stand-ins": theirs}
    names = {name: f"{PREFIX}{name}:{tag}" for name, tag in tags.items()}
    missing = [name for name, image in names.items() if not _exists(image)]
    cache.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="image") as pool:
        jobs = {name: pool.submit(builders[name], name, cache) for name in missing}
        for name, job in jobs.items():
            identifier = job.result()
            run(["podman", "tag", identifier, names[name]])
            sys.stdout.write(f"built {names[name]}\n")
            sys.stdout.flush()
    return Images(names["services"], names["trial-cpu"], names["stand-ins"])


def fingerprint(ingredients: Sequence[str]) -> str:
    """Names the content of files and folders of this repository: an edited file has another name."""
    found = hashlib.sha256()
    for path in sorted(_files(ingredients)):
        found.update(f"{path.relative_to(ROOT)}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:12]


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


def _options(cache: Path) -> build.Options:
    return build.Options(
        prefix=PREFIX, output=cache, cache=cache, apt_sources=Path("/etc/apt/sources.list.d")
    )


def _build_ours(name: str, cache: Path) -> str:
    return build.build(name, _options(cache))


def _build_stand_ins(name: str, cache: Path) -> str:
    """Builds PostgreSQL and the S3 server into one image, each with an entry of its own."""
    recipe = hashlib.sha256(repr(_STAND_INS_ROOT).encode()).hexdigest()[:16]
    tar = cache / f"debian-{name}-{recipe}.tar"
    if not tar.exists():
        rootfs.bootstrap(_STAND_INS_ROOT, cache, sources=_options(cache).apt_sources).rename(tar)
    base = build.from_tar(tar, f"{PREFIX}debian-{name}")
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch)
        for file in STAND_INS.iterdir():
            shutil.copy(file, context)
        shutil.copy(Path(sys.executable).with_name("rclone"), context)
        return build.buildah(PREFIX + name, context / "Containerfile", context, arguments={"BASE": base})
