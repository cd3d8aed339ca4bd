"""The built wheel, outside of the checkout: the SDK alone, and the whole platform with its `server` extra."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)

ROOT = Path(__file__).resolve().parents[3]
CONFIG = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss, max_length: 2}\n"
SCRIPT = """
import determined as det
import resolute

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 0.5})
        op.report_completed(0.5)
print("trained with", det.core.__name__, resolute.__file__)
"""
OFF_CLUSTER = """
import resolute
from resolute import core

assert resolute.get_cluster_info() is None
with core.init() as context:
    for op in context.searcher.operations():
        context.train.report_training_metrics(steps_completed=1, metrics={"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "weights").write_text("w")
        with context.checkpoint.restore_path(uuid) as path:
            assert (path / "weights").read_text() == "w"
        op.report_completed(1.0)
print("done off cluster")
"""


def run(*command: str, cwd: Path, environment: dict[str, str] | None = None) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RESOLUTE_", "DET_", "PYTHON"))}
    result = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT), cwd=folder)
    (built,) = folder.glob("resolute_train-*.whl")
    return built


def install(wheel: Path, folder: Path, *, extra: str = "") -> Path:
    """Installs the wheel into an empty environment and returns its ``bin``."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    # By the pip that is here, and compiling only what is imported: both take longer than all that is tested.
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile")
    run(*pip, f"{wheel}{extra}", cwd=folder)
    return python.parent


def test_wheel_carries_types_the_compat_package_and_every_service(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = (
        "serving",
        "config",
        "experiments",
        "searcher",
        "metrics",
        "logs",
        "checkpoints",
        "preemption",
        "embedded",
    )
    assert {f"resolute_{name}/py.typed" for name in packages} <= names
    assert {"resolute/py.typed", "resolute_launch/compat/determined/__init__.py"} <= names
    assert {"resolute_gateway/page/index.html", "resolute_gateway/page/assets/index.js"} <= names
    owned = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert all(name.startswith("resolute") for name in owned), owned


def test_bare_wheel_runs_a_core_api_script_off_cluster(wheel: Path, tmp_path: Path) -> None:
    binaries = install(wheel, tmp_path)
    (tmp_path / "script.py").write_text(OFF_CLUSTER)
    said = run(str(binaries / "python"), "script.py", cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert "done off cluster" in said
    refused = subprocess.run(
        [binaries / "resolute", "up"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert f"pip install '{wheel}[server]'" in refused.stderr


def test_wheel_with_server_extra_runs_an_experiment(wheel: Path, tmp_path: Path) -> None:
    binaries = install(wheel, tmp_path, extra="[server]")
    home = {"RESOLUTE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(SCRIPT)
    (tmp_path / "project/config.yaml").write_text(CONFIG)
    resolute = str(binaries / "resolute")
    run(resolute, "up", "--detach", "--slots", "1", cwd=tmp_path, environment=home)
    try:
        said = run(
            resolute,
            "experiment",
            "create",
            "project/config.yaml",
            "project",
            "-f",
            cwd=tmp_path,
            environment=home,
        )
        assert "trained with" in said
        assert str(tmp_path / "venv") in said, (
            "the trial imports the installed distribution, not the checkout"
        )
    finally:
        run(resolute, "down", cwd=tmp_path, environment=home)
    wait_until(lambda: not list_processes(tmp_path), what="every process to end", seconds=20)


def list_processes(folder: Path) -> list[bytes]:
    """Command lines of processes that name the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in line:
                found.append(line)
    return found
