"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SERVICES = ("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption")
SHARED_WITH_SERVICES = ("resolute.api", "resolute.contracts", "resolute.errors")
"""Parts of the SDK that are contracts between both sides, and import nothing but each other."""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offences(folder: Path, forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(folder.rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] in forbidden
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_services_never_import_each_other_nor_the_composition_root(service: str) -> None:
    others = tuple(f"resolute_{other}" for other in (*SERVICES, "embedded") if other != service)
    assert offences(ROOT / "services" / service, (*others, "resolute_launch")) == []


def is_shared(name: str) -> bool:
    """Whether a name of the SDK is one of the shared modules, or something in one."""
    return name == "resolute" or any(f"{name}.".startswith(f"{shared}.") for shared in SHARED_WITH_SERVICES)


@pytest.mark.parametrize("service", SERVICES)
def test_services_take_only_contracts_from_the_sdk(service: str) -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "services" / service).rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] == "resolute" and not is_shared(name)
    ]
    assert found == []


def test_the_server_kit_imports_no_service() -> None:
    forbidden = tuple(f"resolute_{service}" for service in (*SERVICES, "embedded"))
    assert offences(ROOT / "services" / "serving", (*forbidden, "resolute_launch")) == []


def test_sdk_and_launchers_import_no_service() -> None:
    forbidden = tuple(f"resolute_{service}" for service in (*SERVICES, "embedded", "serving"))
    assert offences(ROOT / "sdk", (*forbidden, "resolute_launch")) == []
    assert offences(ROOT / "launchers", forbidden) == []


@pytest.mark.parametrize("name", ["resolute", "resolute.client", "resolute.cli.main"])
def test_light_imports_load_neither_torch_nor_a_database(name: str) -> None:
    code = (
        f"import sys, {name}\n"
        "heavy = {'torch', 'sqlalchemy', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
