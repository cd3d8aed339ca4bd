"""What is found of the software of a run."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from resolute_launch.container.software import installed_packages, run_environment


def test_packages_are_found_by_their_metadata_and_the_first_on_the_path_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name in (
        "Some_Package-1.2.dist-info",
        "dotted.name-5.0.dist-info",
        "old-3.0-py3.11.egg-info",
        "notes.txt",
        "no-version",
    ):
        (first / name).mkdir(parents=True)
    (second / "some_package-9.dist-info").mkdir(parents=True)
    found = installed_packages([str(first), str(second), str(tmp_path / "missing"), ""])
    assert found["some-package"] == "1.2"
    assert found["old"] == "3.0"
    assert found["dotted-name"] == "5.0"
    assert not {"notes", "no"} & found.keys()


def test_the_environment_names_what_this_process_uses() -> None:
    found = run_environment(python="/venv/bin/python")
    packages = {package.name: package.version for package in found.packages}
    assert packages["click"] == version("click")
    assert found.python_path == "/venv/bin/python"
    assert found.host_name
