"""An installation of an older revision, taken from the history of this checkout."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
_PACKAGES = ("sdk", "launchers", "engines", "services/*")
_COMMAND = "#!{python}\nimport sys\n\nfrom resolute.cli.main import main\n\nsys.exit(main())\n"


@dataclass(frozen=True, kw_only=True)
class Installation:
    """An environment whose code can be replaced, as an installation into the same place does."""

    bin: Path
    """Its commands."""
    code: Path
    """A link to the code that its processes import."""

    def use(self, checkout: Path) -> None:
        """Replaces the code.

        Args:
            checkout: The root of a checkout of any revision.
        """
        prepared = self.code.with_name("code.next")
        prepared.symlink_to(checkout)
        prepared.replace(self.code)


def has_revision(revision: str) -> bool:
    """Tells whether the history holds a commit; an archive or a shallow clone holds none."""
    command = ("git", "cat-file", "-e", f"{revision}^{{commit}}")
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0


def install(revision: str, folder: Path) -> Installation:
    """Installs a revision beside the third-party packages of this environment.

    Args:
        revision: A commit of this checkout's history.
        folder: A new folder for the code and its environment.
    """
    source, environment = folder / "source", folder / "environment"
    archive = subprocess.run(
        ("git", "archive", "--format=tar", revision), cwd=CHECKOUT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source, filter="data")
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", environment), check=True)
    installation = Installation(bin=environment / "bin", code=folder / "code")
    installation.use(source)
    _write_path(installation, environment)
    for command in ("resolute", "det"):
        script = installation.bin / command
        script.write_text(_COMMAND.format(python=installation.bin / "python"))
        script.chmod(0o755)
    return installation


def _write_path(installation: Installation, environment: Path) -> None:
    # Of a folder that a .pth file names the .pth files are not read: the editable installation of the current
    # code stays out.
    packages = {
        installation.code / path.relative_to(root)
        for root in (CHECKOUT, installation.code.resolve())
        for pattern in _PACKAGES
        for path in root.glob(pattern)
    }
    lines = [*map(str, sorted(packages)), sysconfig.get_path("purelib")]
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    (site / "revision.pth").write_text("\n".join(lines) + "\n")
