"""Names of images, and the credentials of their registries."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from resolute.errors import FailedPreconditionError
from resolute_engines.container.images.names import registry_header, registry_of, with_tag

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("image", "tagged", "registry"),
    [
        ("python", "python:latest", "docker.io"),
        ("python:3.11", "python:3.11", "docker.io"),
        ("team/vision", "team/vision:latest", "docker.io"),
        ("localhost/resolute-trial-cpu", "localhost/resolute-trial-cpu:latest", "localhost"),
        (
            "registry.example:5000/team/vision",
            "registry.example:5000/team/vision:latest",
            "registry.example:5000",
        ),
        (f"quay.io/team/vision@{DIGEST}", f"quay.io/team/vision@{DIGEST}", "quay.io"),
    ],
)
def test_a_name_without_a_tag_is_that_of_the_latest_one_and_names_its_registry(
    image: str, tagged: str, registry: str
) -> None:
    assert with_tag(image) == tagged
    assert registry_of(image) == registry


def logins(folder: Path, **entries: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"auths": entries}))
    return path


def login(user: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:pass:word".encode()).decode()}


def told(path: Path, image: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(registry_header(path, image)))


def test_credentials_are_those_of_the_images_registry(tmp_path: Path) -> None:
    hub = {"https://index.docker.io/v1/": login("of-the-hub")}
    path = logins(tmp_path, **hub, **{"quay.io": login("of-quay"), "token.example": {"identitytoken": "t"}})
    assert told(path, "team/vision") == {
        "serveraddress": "docker.io",
        "username": "of-the-hub",
        "password": "pass:word",
    }
    assert told(path, "quay.io/team/vision")["username"] == "of-quay"
    assert told(path, "token.example/a") == {"serveraddress": "token.example", "identitytoken": "t"}
    assert registry_header(path, "localhost/resolute-trial-cpu") == ""


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"auths": {"quay.io": {}}}', '{"auths": {"quay.io": {"auth": "!"}}}']
)
def test_a_file_that_has_no_credentials_to_read_says_how_to_write_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(FailedPreconditionError, match=f"podman login --authfile {path} quay.io"):
        registry_header(path, "quay.io/team/vision")
    with pytest.raises(FailedPreconditionError, match="cannot be read from"):
        registry_header(tmp_path / "absent", "quay.io/team/vision")
