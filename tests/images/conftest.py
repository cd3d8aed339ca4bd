"""The images, each built once."""

from __future__ import annotations

import pytest
from images.builds import PREFIX, build_image
from support.containers import Podman
from support.page_commands import ROOT


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Podman with settings of its own."""
    return Podman.found(tmp_path_factory.mktemp("podman"))


@pytest.fixture(scope="session")
def services_image(podman: Podman) -> str:
    """Name of the image of the services."""
    build_image(podman, "services", ROOT / ".cache/images")
    return f"{PREFIX}services"


@pytest.fixture(scope="session")
def trial_image(podman: Podman) -> str:
    """Name of the image of trials on CPUs."""
    build_image(podman, "trial-cpu", ROOT / ".cache/images")
    return f"{PREFIX}trial-cpu"
