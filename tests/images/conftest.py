"""The images of the demonstration: built once for all that is tested of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from compose_demo.images import Images, build_missing
from support.daemons.containers import Podman
from support.pages.commands import ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets tests build images, which takes long on a busy machine."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(3600))


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Podman with settings of its own."""
    return Podman.found(tmp_path_factory.mktemp("podman"))


@pytest.fixture(scope="session")
def images(podman: Podman) -> Images:
    """Names of the images."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in podman.environment.items():
            patch.setenv(name, value)
        return build_missing(ROOT / ".cache/images")
