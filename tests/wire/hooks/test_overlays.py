"""What a startup hook installs is the run's own, and the environment of the platform stays as it is."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.clusters.supervisors import Supervised, supervised
from support.suite.sampling import Sample
from support.suite.site_packages import changed_files, installed_files
from wire.hooks.installs import make_wheel

SHOW = """
import importlib, importlib.metadata, json, subprocess, sys
name = sys.argv[1]
module = importlib.import_module(name)
print(json.dumps({
    "version": getattr(module, "VERSION", getattr(module, "__version__", "")),
    "metadata": importlib.metadata.version(name),
    "script": subprocess.run([name], capture_output=True, text=True).stdout.strip(),
    "prefix": sys.prefix,
}))
"""


@pytest.fixture(autouse=True)
def _platform_stays_as_it_is() -> Iterator[None]:
    before = installed_files()
    yield
    assert changed_files(before, installed_files()) == []


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with wheels of two versions of a package, and one of a package that the platform has."""
    folder = tmp_path / "wheels"
    for version in ("1.0", "2.0"):
        make_wheel(folder, "tabby", version)
    make_wheel(folder, "six", "99.0")
    return folder


@contextlib.contextmanager
def hooked(
    folder: Path,
    hook: str,
    *,
    entrypoint: Any = ("python3", "show.py", "tabby"),
    name: str = "a",
    **options: Any,
) -> Iterator[tuple[Supervised, ControlPlane]]:
    """Starts a run whose code has a startup hook."""
    order = {"overlays": str(folder / "overlays"), **options.pop("order", {})}
    environ = options.pop("environ", None)
    files = {"show.py": SHOW, "startup-hook.sh": hook, **options.pop("files", {})}
    options = {"experiment_id": "1", **options}
    with (
        control_plane(list(entrypoint), files=files, **options) as plane,
        supervised(folder / name, plane, environ=environ, **order) as run,
    ):
        yield run, plane


def shown(run: Supervised, plane: ControlPlane) -> dict[str, Any]:
    """Waits for the end of a run, and returns what its script found."""
    assert run.wait(120) == 0, run.log()
    assert run.record().failure == ""
    found: dict[str, Any] = json.loads(plane.text(stdtype="stdout")[-1])
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    [
        "pip install",
        "pip3 install -q",
        "python -m pip install",
        "python3 -m pip install --upgrade",
        "uv pip install --offline",
        "uv pip install --offline --python python3",
        "printf '\\357\\273\\277tabby\\r\\n' > needs.txt; pip install -r needs.txt",
        "printf '\\357\\273\\277tabby\\r\\n' > needs.txt; uv pip install --offline -r needs.txt",
        f"{sys.executable} -m pip install",
        f"{Path(sys.executable).parent}/pip install",
        "export PYTHONPATH=$PWD; pip install",
    ],
)
def test_what_a_hook_installs_is_there_for_its_run_alone(tmp_path: Path, wheels: Path, command: str) -> None:
    with hooked(tmp_path, f"{command} --no-index --find-links {wheels} tabby==1.0\n") as (run, plane):
        found = shown(run, plane)
        assert found["version"] == found["metadata"] == found["script"] == "1.0"
        assert found["prefix"] == str(run.run.path / "overlay")
        (line,) = [text for text in plane.text(stdtype="") if "startup-hook.sh" in text]
        assert re.fullmatch(r"startup-hook\.sh took [\d.]+ s; installed for this run: tabby 1\.0", line)
        (environment,) = plane.environments
        packages = {package.name: package.version for package in environment.packages}
        assert packages["tabby"] == "1.0"
        assert "grpcio" in packages


def test_a_newer_copy_of_what_the_platform_has_comes_first_and_none_is_taken_away(
    tmp_path: Path, wheels: Path
) -> None:
    hook = f"pip install --no-index --find-links {wheels} six==99.0\npip uninstall -y tabulate rich\n"
    with hooked(tmp_path, hook, entrypoint=("python3", "show.py", "six")) as (run, plane):
        found = shown(run, plane)
        assert found["version"] == found["metadata"] == "99.0"
        present = importlib.metadata.version("six")
        assert any(f"six 99.0 (in place of {present})" in line for line in plane.text(stdtype=""))


def test_scripts_of_the_platform_see_what_the_hook_installed(tmp_path: Path, wheels: Path) -> None:
    hook = f"pip install -q --no-index --find-links {wheels} tabby==2.0\n"
    files = {"test_it.py": "import tabby\ndef test_it(): pass\n"}
    collect = ("pytest", "-q", "--collect-only", "test_it.py")
    with hooked(tmp_path, hook, entrypoint=collect, files=files) as (run, plane):
        assert run.wait(120) == 0, run.log()
        assert "test_it.py::test_it" in "\n".join(plane.text(stdtype="stdout"))


def test_later_runs_of_an_experiment_find_what_the_first_has_installed(tmp_path: Path, wheels: Path) -> None:
    # Without a package of that name anywhere, pip takes the one that is there.
    hook = f"pip install -q --no-index --find-links {wheels} tabby\npip install -q --no-index $MORE\n"
    with hooked(tmp_path, hook, environ={"MORE": "tabby"}) as (run, plane):
        assert shown(run, plane)["version"] == "2.0"
    for wheel in wheels.glob("tabby*"):
        wheel.unlink()
    six = str(next(wheels.glob("six*")))
    with hooked(tmp_path, hook, name="b", environ={"MORE": six}) as (run, plane):
        found = shown(run, plane)
        assert found["version"] == found["script"] == "2.0"
        assert found["prefix"] == str(run.run.path / "overlay")
        (line,) = [text for text in plane.text(stdtype="") if "startup-hook.sh took" in text]
        assert "found from earlier runs of the experiment: tabby 2.0" in line
        assert "installed for this run: six 99.0" in line
    # What the second has installed is its own.
    with hooked(tmp_path, hook, name="c", environ={"MORE": "tabby"}) as (run, plane):
        assert shown(run, plane)["version"] == "2.0"
        assert not any("six" in text for text in plane.text(stdtype=""))
    # Another experiment starts from nothing.
    with hooked(tmp_path, hook, name="d", environ={"MORE": "tabby"}, experiment_id="7") as (run, plane):
        assert run.wait(60) == 0
        assert "No matching distribution found for tabby" in plane.exits[0].failure


def test_containers_of_a_run_install_once(tmp_path: Path, wheels: Path) -> None:
    hook = f"pip install --no-index --find-links {wheels} tabby==1.0\n"
    overlays = str(tmp_path / "overlays")
    files = {"show.py": SHOW, "startup-hook.sh": hook}
    with (
        control_plane(
            ["python3", "show.py", "tabby"], files=files, container_count=2, collective_key="key"
        ) as plane,
        supervised(tmp_path, plane, overlays=overlays) as one,
        supervised(tmp_path, plane, overlays=overlays, container_rank=1, slot_ids=(1,)) as other,
    ):
        for run in (one, other):
            assert run.wait(120) == 0, run.log()
        text = "\n".join(plane.text())
    assert text.count("Successfully installed tabby-1.0") == 1
    assert text.count("found from earlier runs of the experiment: tabby 1.0") == 1


@pytest.mark.parametrize("end", ["false", "kill -9 $PPID; sleep 100"], ids=["failed", "killed"])
def test_what_a_hook_left_half_done_is_used_by_nobody(tmp_path: Path, wheels: Path, end: str) -> None:
    install = f"pip install -q --no-index --find-links {wheels} tabby==$WANTED"
    hook = f"{install}\ntest $WANTED = 2.0 || {{ {end}; }}\n"
    with hooked(tmp_path, hook, environ={"WANTED": "1.0"}) as (run, _):
        assert run.wait(60) in {0, -9}
        assert list(run.run.path.glob("overlay/lib/*/site-packages/tabby.py"))
    assert not list((tmp_path / "overlays").glob("*/layer.json"))
    with hooked(tmp_path, hook, name="b", environ={"WANTED": "2.0"}) as (run, plane):
        assert shown(run, plane)["version"] == "2.0"
        assert any("installed for this run: tabby 2.0" in line for line in plane.text(stdtype=""))


def test_hooks_at_once_with_packages_that_conflict(tmp_path: Path, sample: Sample) -> None:
    wheels, count = tmp_path / "wheels", sample.size(whole=20, part=4)
    for number in range(count):
        make_wheel(wheels, "tabby", f"{number}.0", requires=f"six=={90 + number}.0")
        make_wheel(wheels, "six", f"{90 + number}.0")
    with contextlib.ExitStack() as stack:
        runs = []
        for number in range(count):
            hook = f"pip install -q --no-index --find-links {wheels} tabby=={number}.0\n"
            command = "python3 show.py tabby && python3 show.py six"
            options: dict[str, Any] = {"name": str(number), "experiment_id": str(number)}
            runs.append(
                stack.enter_context(hooked(tmp_path, hook, entrypoint=("sh", "-c", command), **options))
            )
        for number, (run, plane) in enumerate(runs):
            assert run.wait(300) == 0, run.log()
            tabby, six = (json.loads(line) for line in plane.text(stdtype="stdout")[-2:])
            assert tabby["version"] == tabby["metadata"] == tabby["script"] == f"{number}.0"
            assert six["version"] == six["metadata"] == f"{90 + number}.0"
            assert not any("WARNING" in line for line in plane.text(stdtype=""))


def test_a_config_that_chooses_another_python_keeps_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    venv.create(elsewhere, symlinks=True)
    config = {"environment": {"environment_variables": [f"PATH={elsewhere}/bin:/usr/bin:/bin"]}}
    show = ["python3", "-c", "import json, sys; print(json.dumps({'prefix': sys.prefix}))"]
    with hooked(tmp_path, "true\n", entrypoint=show, config=config) as (run, plane):
        assert shown(run, plane)["prefix"] == str(elsewhere)


def test_an_environment_that_a_hook_makes_is_the_one_that_is_used(tmp_path: Path) -> None:
    hook = "python3 -m venv --without-pip own\n. own/bin/activate\n"
    show = ["python3", "-c", "import json, sys; print(json.dumps({'prefix': sys.prefix}))"]
    with hooked(tmp_path, hook, entrypoint=show) as (run, plane):
        assert shown(run, plane)["prefix"] == str(run.run.work / "own")
