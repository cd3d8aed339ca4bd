"""Checks of a container engine: images, credentials, and mounted directories."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from resolute.contracts.distribution import version
from resolute.errors import NotFoundError, ResoluteError
from resolute_embedded.doctor.engines.contact import page_of
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_engines.container.client import DockerApi
from resolute_engines.container.images.names import registry_header
from resolute_engines.container.runtime import parts
from resolute_engines.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_engines.settings import EngineSettings, parse_options

_BUILT_HERE = "localhost/"
_ON_THIS_MACHINE = "unix:"


def check_containers(engine: EngineSettings) -> Iterator[Finding]:
    """Looks at what a restart of the engine ends, at the pools' images and at files that settings name."""
    options = parse_options(ContainerEngineOptions, engine.options, at=engine.where)
    if (ended := asyncio.run(_restart(engine, options))) is not None:
        yield ended
    if options.runtime:
        yield _runtime(engine, Path(options.runtime))
    if options.url.startswith(_ON_THIS_MACHINE):
        for directory in options.checkpoint_directories:
            yield _directory(engine, Path(directory), user=options.user)
    for pool in engine.pools:
        image = parse_options(ContainerPoolOptions, pool.options, at=pool.where).image
        if image:
            yield asyncio.run(_image(engine, options, f"image of pool {pool.name}", image))


async def _restart(engine: EngineSettings, options: ContainerEngineOptions) -> Finding | None:
    """Whether runs outlive the engine's daemon; None for Podman, which has none that they could end with."""
    subject = f"restart of engine {engine.name}"
    api = DockerApi(options.url)
    try:
        if await api.is_podman():
            return None
        lives = (await api.get("/info"))["LiveRestoreEnabled"]
    except ResoluteError:
        # An engine that does not answer was reported.
        return None
    finally:
        await api.close()
    if lives:
        return good(subject, "runs go on when Docker's daemon restarts")
    return warning(
        subject,
        "all runs end with Docker's daemon, such as when Docker is upgraded",
        remedy='put `"live-restore": true` into /etc/docker/daemon.json on the engine\'s machine, and then '
        "`systemctl reload docker`",
    )


def _runtime(engine: EngineSettings, folder: Path) -> Finding:
    subject = f"runtime of engine {engine.name}"
    pythons = sorted(path.name for path in folder.glob("cp3*") if path.is_dir())
    if not (folder / "start.sh").is_file() or not pythons:
        return fault(
            subject,
            f"{folder} has nothing that could be mounted into images, as far as this machine sees",
            remedy=f"`python -m resolute_engines.container.runtime {folder}` on the engine's "
            f"machine: {page_of(engine)}",
        )
    for python, name in parts(folder).items():
        if not name.startswith(f"{version()}-"):
            return warning(
                subject,
                f"{folder}/{python} is of Resolute {name}, and this is {version()}",
                remedy=f"move it away and build it again: {page_of(engine)}",
            )
    return good(subject, f"{folder} has parts for {', '.join(pythons)}")


def _directory(engine: EngineSettings, directory: Path, *, user: str) -> Finding:
    subject = f"checkpoints of engine {engine.name}"
    uid, _, gid = user.partition(":")
    made = f"`install -d -o {uid} -g {gid} {directory}` as root"
    try:
        status = directory.stat()
    except FileNotFoundError:
        return fault(subject, f"{directory} is not there: no trial can mount it", remedy=made)
    except OSError as error:
        return warning(subject, f"{directory} cannot be read: {error.strerror}", remedy=page_of(engine))
    if not _may_write(status, uid=int(uid), gid=int(gid)):
        return warning(
            subject,
            f"by its mode and owner, trials may not write to {directory} as {user}, which they are there",
            remedy=f"{made}, or give the engine its owner as `user`",
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        return warning(
            subject,
            f"the services may not write to {directory}, where each workspace gets a directory",
            remedy=f"let them run as user {status.st_uid}, which owns it, or as root",
        )
    return good(subject, f"trials and services may write to {directory}")


def _may_write(status: os.stat_result, *, uid: int, gid: int) -> bool:
    """Whether somebody without capabilities may make files in a directory, by its mode."""
    if status.st_uid == uid:
        wanted = stat.S_IWUSR | stat.S_IXUSR
    elif status.st_gid == gid:
        wanted = stat.S_IWGRP | stat.S_IXGRP
    else:
        wanted = stat.S_IWOTH | stat.S_IXOTH
    return status.st_mode & wanted == wanted


async def _image(
    engine: EngineSettings, options: ContainerEngineOptions, subject: str, image: str
) -> Finding:
    api = DockerApi(options.url)
    try:
        await api.get(f"/images/{image}/json")
    except NotFoundError:
        if image.startswith(_BUILT_HERE):
            return fault(subject, f"{image} is not there", remedy=f"build it: {page_of(engine)}")
        if options.credentials and (complaint := _complaint(Path(options.credentials), image)):
            return fault(subject, f"{image} is not there, and {complaint}", remedy=page_of(engine))
        return warning(
            subject,
            f"{image} is not there: the first trial waits until it is pulled",
            remedy=f"`podman pull {image}`, or `docker pull {image}`, on the engine's machine",
        )
    except ResoluteError as error:
        return fault(subject, str(error), remedy=page_of(engine))
    finally:
        await api.close()
    return good(subject, f"{image} is there")


def _complaint(credentials: Path, image: str) -> str:
    """What is wrong with the credentials for the registry of an image; empty for nothing."""
    try:
        registry_header(credentials, image)
    except ResoluteError as error:
        return str(error)
    return ""
