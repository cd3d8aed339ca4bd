"""What importing the SDK costs. Who may import whom is held by import-linter: see ``pyproject.toml``."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["resolute", "resolute.client", "resolute.cli.main"])
def test_light_imports_load_neither_torch_nor_a_database(name: str) -> None:
    code = (
        f"import sys, {name}\n"
        "heavy = {'torch', 'sqlalchemy', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
