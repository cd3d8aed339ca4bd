"""What importing the SDK costs, and how large folders are. Who may import whom is held by import-linter."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.pages.commands import ROOT


@pytest.mark.parametrize("name", ["resolute", "resolute.client", "resolute.cli.main"])
def test_light_imports_load_neither_torch_nor_a_database(name: str) -> None:
    code = (
        f"import sys, {name}\n"
        "heavy = {'torch', 'sqlalchemy', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_files_are_mapped_in_one_module_only() -> None:
    # It reserves their space first: on a full disk, access to a page without a block kills the process.
    maps = re.compile(r"^(import|from) mmap|import shared_memory|memmap\(|mmap_mode=|mmap=True", re.MULTILINE)
    found = [
        str(path.relative_to(ROOT))
        for folder in ("sdk", "launchers", "engines", "services")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if maps.search(path.read_text())
    ]
    assert found == ["sdk/resolute/contracts/files/mapped_file.py"]


def test_no_folder_has_too_many_modules() -> None:
    most = 14
    packages = [
        package.parent
        for folder in ("sdk", "launchers", "engines", "services", "compat")
        for package in (ROOT / folder).rglob("__init__.py")
        if not {"api", "versions"} & set(package.parts)  # generated, and one file for each migration
    ]
    counts = {str(package.relative_to(ROOT)): len(list(package.glob("[!_]*.py"))) for package in packages}
    assert {package: count for package, count in counts.items() if count > most} == {}
