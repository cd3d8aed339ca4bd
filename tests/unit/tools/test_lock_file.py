"""The lock file of the services holds what pyproject.toml asks for, with digests and without addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "deploy" / "locks" / "services.txt"
tomllib = pytest.importorskip("tomllib") if sys.version_info >= (3, 11) else pytest.importorskip("tomli")


def locked() -> dict[str, set[str]]:
    """The versions of each package: there may be one for each version of Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.+!]+)", LOCK.read_text(), re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def test_every_dependency_of_the_services_is_locked_to_a_version_that_is_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(
            one
            for name in ("server", "search", "gateway", "gcs", "azure", "container", "kubernetes")
            for one in extras[name]
        ),
    ]
    versions = locked()
    wrong = [
        text
        for text in wanted
        if not any(
            map(
                Requirement(text).specifier.contains,
                versions.get(canonicalize_name(Requirement(text).name), ()),
            )
        )
    ]
    assert wrong == []


def test_every_package_has_digests_and_no_address_is_named() -> None:
    text = LOCK.read_text()
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(packages) > 30
    assert all("--hash=sha256:" in package for package in packages)
    assert "://" not in text
    assert "index-url" not in text
