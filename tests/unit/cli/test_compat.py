"""``resolute compat``: the name ``determined`` in an environment, and never over the package itself."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Environment:
    """A Python environment that sees what this one has, by its directories."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, symlinks=True)
        self.python = directory / "bin" / "python"
        self.packages = Path(self.run("import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        seen = [
            ROOT / "sdk",
            ROOT / "launchers",
            *(path for path in sys.path if path.endswith("site-packages")),
        ]
        (self.packages / "seen.pth").write_text("".join(f"{path}\n" for path in seen))

    def run(self, code: str) -> str:
        """Runs code and returns what it printed."""
        result = subprocess.run(
            [str(self.python), "-c", code],
            cwd=self.python.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        return result.stdout + result.stderr

    def resolute(self, *words: str) -> str:
        """Runs a command and returns what it printed."""
        return self.run(f"from resolute.cli.main import main; main({list(words)!r})")


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


IMPORT = "import determined, resolute.core; print(determined.core.Context is resolute.core.Context)"


def test_one_line_makes_determined_known_and_another_undoes_it(environment: Environment) -> None:
    assert "No module named 'determined'" in environment.run(IMPORT)
    assert "nothing to undo" in environment.resolute("compat", "uninstall")
    for _ in range(2):
        assert "reaches Resolute" in environment.resolute("compat", "install")
    assert environment.run(IMPORT) == "True\n"
    environment.resolute("compat", "uninstall")
    assert "No module named 'determined'" in environment.run(IMPORT)


def test_the_package_itself_is_never_overwritten(environment: Environment) -> None:
    package = environment.packages / "determined"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '0.38.1'\n")
    said = environment.resolute("compat", "install")
    assert "is not overwritten, nor is its `det`" in said
    assert str(package) in said
    assert not (environment.packages / "resolute_compat.pth").exists()
