"""Writes the packages of the wheel into pyproject.toml's lists for mypy and import-linter, or checks these.

Neither of the two can share a list with another table. ``--check`` compares instead of writing.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
_NOT_IN_WHEEL = ("compat", "tests", "tools", "tools/pages", "benchmarks/trainer")
"""Folders of modules that mypy checks too."""


def with_lists(project: str) -> str:
    """Returns pyproject.toml with the lists as the packages of the wheel say.

    Raises:
        SystemExit: A package has no layer.
    """
    packages = [
        PurePosixPath(name) for name in json.loads(_value(project, "packages").replace(",\n]", "\n]"))
    ]
    layers = _value(project, "layers")
    if homeless := [package.name for package in packages if not re.search(rf"\b{package.name}\b", layers)]:
        sys.exit(f"pyproject.toml: {', '.join(homeless)} has no place in `layers` of tool.importlinter")
    folders = [str(package.parent) for package in packages]
    project = _replaced(project, "mypy_path", json.dumps(":".join([*folders, *_NOT_IN_WHEEL])))
    names = "".join(f'  "{package.name}",\n' for package in packages)
    return _replaced(project, "root_packages", f"[\n{names}]")


def _value(project: str, key: str) -> str:
    """The first value of a key: a string, or a list that ends in a line of its own."""
    match = re.search(rf'^{key} = (".*?"$|\[\n.*?^\])', project, re.MULTILINE | re.DOTALL)
    assert match is not None, key
    return match[1]


def _replaced(project: str, key: str, value: str) -> str:
    return project.replace(f"{key} = {_value(project, key)}", f"{key} = {value}", 1)


def main() -> None:
    file = ROOT / "pyproject.toml"
    project = file.read_text()
    if "--check" not in sys.argv[1:]:
        file.write_text(with_lists(project))
    elif with_lists(project) != project:
        sys.exit(
            "pyproject.toml: lists of packages differ from the wheel's; run `python tools/package_lists.py`"
        )


if __name__ == "__main__":
    main()
