"""The image of the services: the same each time, without the machine's settings; each service runs in it."""

from __future__ import annotations

import json
import tarfile
import uuid
from pathlib import Path

import pytest
from compose_demo.images import Images
from images.builds import Built, build_from_nothing
from support.daemons.containers import Podman
from support.pages.commands import ROOT
from support.ports import free_port
from support.waiting import wait_until

SERVICES = ("searcher", "metrics", "logs", "checkpoints", "experiments", "preemption", "gateway")
_HARDENED = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host")


@pytest.fixture(scope="module")
def built_again(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image of the services, from nothing but the checkout."""
    return build_from_nothing(podman, "services", tmp_path_factory.mktemp("built"))


def test_two_builds_from_nothing_but_the_lock_give_one_image(
    podman: Podman, images: Images, built_again: Built
) -> None:
    first = podman.run("image", "inspect", "--format={{.Id}}", images.services).strip()
    assert built_again.identifier == first


def test_no_layer_and_no_history_has_settings_of_apt_or_pip(
    podman: Podman, images: Images, tmp_path: Path
) -> None:
    for number, name in enumerate((images.services, images.trial)):
        folder = tmp_path / str(number)
        podman.run("save", "--format=oci-dir", f"--output={folder}", name)
        config = podman.run("image", "inspect", name)
        texts = [config, *(blob.read_text() for blob in folder.rglob("*") if _is_json(blob))]
        names = [member for blob in folder.rglob("*") if _is_tar(blob) for member in _members(blob, texts)]
        assert len(names) > 3000
        kept = {
            "etc/apt/sources.list",
            "etc/pip.conf",
            "root/.config/pip/pip.conf",
            "root/.netrc",
            "etc/apt/auth.conf",
        }
        assert not kept & set(names)
        assert not [
            name for name in names if name.startswith(("wheels/", "etc/apt/sources.list.d/", "opt/wheels"))
        ]
        for secret in _settings_of_this_machine():
            assert not [text[:200] for text in texts if secret in text], secret


def _members(blob: Path, texts: list[str]) -> list[str]:
    """Names in a layer; what it has below /etc and /var is added to the texts."""
    names = []
    with tarfile.open(blob) as layer:
        for member in layer:
            name = member.name.removeprefix("./")
            names.append(name)
            if member.isfile() and name.startswith(("etc/", "var/", "root/", "opt/resolute/bin")):
                opened = layer.extractfile(member)
                assert opened is not None
                texts.append(opened.read().decode(errors="replace"))
            assert member.mtime <= 1_767_225_600
    return names


def _settings_of_this_machine() -> list[str]:
    """What pip is told of package servers here, and this checkout's path."""
    said = [str(ROOT)]
    for file in ("/etc/pip.conf", str(Path("~/.config/pip/pip.conf").expanduser())):
        path = Path(file)
        if path.exists():
            lines = [line.partition("=")[2].split() for line in path.read_text().splitlines()]
            said += [
                word for words in lines for word in words if "/" in word and "ca-certificates" not in word
            ]
    return said


def _is_json(blob: Path) -> bool:
    return blob.is_file() and blob.read_bytes()[:1] == b"{"


def _is_tar(blob: Path) -> bool:
    return blob.is_file() and tarfile.is_tarfile(blob)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_on_a_read_only_root_as_nobody_special(
    podman: Podman, images: Images, service: str
) -> None:
    settings = {
        "RESOLUTE_CLUSTER_ID": str(uuid.uuid4()),
        "RESOLUTE_PORT": str(free_port()),
        "RESOLUTE_DATA_DIR": f"/var/lib/resolute/{service}",
        "RESOLUTE_HTTP_PORT": str(free_port()),
        **{f"RESOLUTE_{name.upper()}_ADDRESS": f"127.0.0.1:{free_port()}" for name in SERVICES[:-1]},
    }
    if service == "experiments":
        settings["RESOLUTE_SIGNING_KEY_FILE"] = "/var/lib/resolute/experiments/signing-key.pem"
    variables = [f"--env={name}={value}" for name, value in settings.items()]
    upgrade = [] if service == "gateway" else ["--upgrade"]
    writable = f"--volume=/var/lib/resolute/{service}"
    container = podman.run(
        "run", "--detach", *_HARDENED, writable, *variables, images.services, service, *upgrade
    ).strip()
    try:
        wait_until(
            lambda: _answers(podman, container, service), what=f"{service} to serve", seconds=600.0, pause=0.5
        )
        assert podman.run("exec", container, "id", "-u").strip() == "10001"
        assert "Read-only" in podman.command(
            ["sh", "-c", f"podman exec {container} touch /opt/resolute/x 2>&1"], check=False
        )
    finally:
        podman.run("rm", "--force", "--volumes", container)


def _answers(podman: Podman, container: str, service: str) -> bool:
    state = podman.run("inspect", "--format={{.State.Running}}", container).strip()
    assert state == "true", podman.command(["sh", "-c", f"podman logs {container} 2>&1"], check=False)
    script = f"podman exec {container} resolute-services health {service} && echo serves"
    return "serves" in podman.command(["sh", "-c", script], check=False)


def test_the_bill_of_materials_lists_what_is_locked(built_again: Built) -> None:
    listed = json.loads(built_again.bom.read_text())
    assert listed["specVersion"] == "1.6"
    named = {(c["purl"].partition("/")[0], c["name"]) for c in listed["components"]}
    lines = (ROOT / "deploy/locks/debian-services.txt").read_text().splitlines()
    locked = {("pkg:deb", line.partition("=")[0]) for line in lines if not line.startswith("#")}
    assert locked <= named
    assert {("pkg:pypi", name) for name in ("grpcio", "sqlalchemy", "resolute-train")} <= named
