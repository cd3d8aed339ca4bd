"""The commands of docs/compose.md that start a cluster, with stand-ins for a registry's images."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compose_demo import engine
from compose_demo.cluster import ComposeCluster
from compose_demo.images import STAND_INS, Images
from support.backends import missing
from support.daemons.containers import Podman
from support.pages.commands import ROOT, blocks_of

_COMPOSE = ROOT / ".cache/compose-demo/bin/podman-compose"
_SECONDS = 1200.0
_COMPOSE_AS_DOCKER = """\
#!/bin/sh
test "$1" = compose || exit 2
shift
exec {compose} --project-name={project} --file=compose.yaml --file={stand_ins} "$@"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what the commands use of a clone."""
    (tmp_path / "clone/deploy").mkdir(parents=True)
    shutil.copy(ROOT / "deploy/compose.yaml", tmp_path / "clone/deploy")
    (tmp_path / "clone/.venv").symlink_to(ROOT / ".venv")
    return tmp_path / "clone"


@pytest.fixture
def cluster(
    podman: Podman, images: Images, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ComposeCluster]:
    """Settings in the file that the page has for them; nothing is left of what starts by them."""
    if not _COMPOSE.exists():
        missing(f"{_COMPOSE} is not here: `make compose-demo` makes it, and `make images`")
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith(("RESOLUTE_", "DET_"))]:
        monkeypatch.delenv(name)
    if not Path("/run/systemd/system").is_dir():
        monkeypatch.setenv("DISABLE_HC_SYSTEMD", "true")
    project = f"resolute-page-{os.getpid()}"
    program = tmp_path / "bin/docker"
    program.parent.mkdir()
    program.write_text(
        _COMPOSE_AS_DOCKER.format(
            compose=_COMPOSE, project=project, stand_ins=shlex.quote(str(STAND_INS / "compose.yaml"))
        )
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with engine.bridge(project, images.services) as host, engine.serving(tmp_path) as socket:
        cluster = ComposeCluster.of(
            project, tmp_path, host=host, images=images, socket=socket, runtime=tmp_path
        )
        settings = "".join(f"{name}={value}\n" for name, value in cluster.variables.items())
        (checkout / "deploy/.env").write_text(settings)
        try:
            yield cluster
        finally:
            down = [str(program), "compose", "down", "--volumes", "--timeout", "2"]
            subprocess.run(down, cwd=checkout / "deploy", check=True, timeout=_SECONDS)


def test_a_cluster_starts_and_is_signed_in_to_by_the_commands_of_the_page(
    cluster: ComposeCluster, checkout: Path
) -> None:
    (script,) = [block.code for block in blocks_of("docs/compose.md") if "up --detach" in block.code]
    for told, ours in (("8080", cluster.ports.gateway), ("8087", cluster.ports.page)):
        assert f":{told}" in script
        script = script.replace(f":{told}", f":{ours}")
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        cwd=checkout,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert "admin" in done.stdout
    assert f"{cluster.page}/" in done.stdout
    assert (checkout / "deploy/authority.pem").read_text().startswith("-----BEGIN CERTIFICATE-----")
