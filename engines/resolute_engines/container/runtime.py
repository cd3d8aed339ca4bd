"""Builds the runtime: the parts of Resolute that are mounted into images that do not contain them.

::

    start.sh              finds the image's Python, or says what the image lacks
    cp311/name            names the installation that it was made of
    cp311/start/          first on the path: adds the next at its end, so that the image's own packages win
    cp311/site/           Resolute and the packages that it needs, as they are installed here

A Python version builds only its own part. For images with another CPython, run this module with that version:
``python -m resolute_engines.container.runtime FOLDER``.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib
import os
import py_compile
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from resolute.contracts.distribution import NAME, version
from resolute.errors import FailedPreconditionError

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_OWN = ("resolute", "resolute_launch")
_NAME_FILE = "name"
_UNNAMED = "0.1.0"
"""The last version whose runtimes do not say what they were made of."""
_SITE = """\
# Anything that the image has itself comes first.
import pathlib, site
site.addsitedir(str(pathlib.Path(__file__).parents[1] / "site"))
"""


def runtime_name() -> str:
    """Names the runtime of what is installed here: another version, or an edited file, has another name."""
    digest = hashlib.sha256()
    for name in _OWN:
        root = _folder(name)
        for path in sorted(root.rglob("*.py")):
            status = path.stat()
            digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"{version()}-{digest.hexdigest()[:12]}"


def make_runtime(folder: Path) -> None:
    """Makes the part for the Python that runs this, unless it is there.

    Raises:
        FailedPreconditionError: The runtime there is another one, which containers may have mounted.
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    there = parts(folder)
    _require_same(folder, tag, there)
    if tag in there:
        return
    with tempfile.TemporaryDirectory(dir=folder) as made:
        start = Path(made) / "start.sh"
        shutil.copyfile(Path(__file__).with_name(start.name), start)
        start.replace(folder / start.name)
        part = Path(made) / tag
        (part / "start").mkdir(parents=True)
        (part / _NAME_FILE).write_text(runtime_name())
        (part / "start/sitecustomize.py").write_text(_SITE)
        _copy_packages(part / "site")
        _compile(part)
        # Others read it: a temporary directory is its owner's alone, and what is in it need not be.
        for path in (part, *part.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        part.rename(folder / tag)


def parts(folder: Path) -> Mapping[str, str]:
    """The parts of a runtime, and the name of the runtime that each was made for."""
    names = {}
    for part in filter(Path.is_dir, sorted(folder.glob("cp3*"))):
        name = part / _NAME_FILE
        names[part.name] = name.read_text() if name.is_file() else _UNNAMED
    return names


def _require_same(folder: Path, tag: str, there: Mapping[str, str]) -> None:
    name = runtime_name()
    for other, named in there.items():
        # Another Python has another installation, of the same version.
        if named != name if other == tag else not named.startswith(f"{version()}-"):
            raise FailedPreconditionError(
                f"{folder}/{other} is of Resolute {named}, and this is {name}: `mv {folder} {folder}.old` "
                "and repeat this. Containers that run keep the old one; remove it once they have ended."
            )


def remove_others(folder: Path, *, used: Collection[str]) -> None:
    """Removes the runtimes beside this one of which no container is left.

    Args:
        folder: The runtime of what is installed here.
        used: Directories that containers have mounted, as the engine names them: it may follow links.
    """
    kept = {os.path.realpath(path) for path in (str(folder), *used)}
    for other in folder.parent.iterdir():
        if os.path.realpath(other) not in kept:
            shutil.rmtree(other, ignore_errors=True)


def _copy_packages(site: Path) -> None:
    for package in _required(NAME):
        for file in package.files or ():
            source = Path(str(package.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    # An editable installation has no files of these, but knows where they are.
    ignored = shutil.ignore_patterns("__pycache__")
    for name in _OWN:
        shutil.copytree(_folder(name), site / name, dirs_exist_ok=True, ignore=ignored)
    compat = importlib.import_module("resolute_launch.installation").compat_path()
    shutil.copytree(compat, site / "resolute_launch/compat", dirs_exist_ok=True, ignore=ignored)


def _compile(part: Path) -> None:
    """Compiles modules once: containers cannot write here, and each would compile all that it imports.

    What is here never changes, so that no import compares it with its source. A file that this
    Python cannot compile, such as one for a later version, stays as it is.
    """
    compileall.compile_dir(
        part,
        quiet=2,
        force=True,
        stripdir=str(part),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _folder(package: str) -> Path:
    return Path(str(importlib.import_module(package).__file__)).parent


def _required(name: str) -> Iterator[Distribution]:
    """A distribution and all that it requires without extras, each once."""
    waiting, known = [name], set()
    while waiting:
        wanted = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if wanted in known:
            continue
        known.add(wanted)
        try:
            package = distribution(wanted)
        except PackageNotFoundError:
            # Another platform's, or one that this Python does not need.
            continue
        yield package
        for line in package.requires or ():
            match = _REQUIREMENT.match(line)
            if match is not None and "extra ==" not in line:
                waiting.append(match[0])


if __name__ == "__main__":
    try:
        make_runtime(Path(sys.argv[1]))
    except FailedPreconditionError as failure:
        sys.exit(str(failure))
