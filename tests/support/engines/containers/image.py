"""The image of engines' tests: Debian with Python 3.11, and nothing of Resolute."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.backends import missing

ROOT = Path(__file__).parents[4]
IMAGE = "localhost/resolute-test-python"
_PACKAGES = "python3,ca-certificates,libstdc++6"
_SECONDS = 1200.0


def root_file_system() -> Path:
    """The image's files as a tar, which is made the first time; skips the test where nothing makes it."""
    tar = ROOT / ".cache/engines/python.tar"
    if not tar.exists():
        if not any(Path(folder, "mmdebstrap").exists() for folder in ("/usr/bin", "/bin")):
            missing("mmdebstrap is not here: tools/install_engines.sh installs it")
        tar.parent.mkdir(parents=True, exist_ok=True)
        made = tar.with_suffix(".part.tar")
        command = [
            "mmdebstrap",
            "--quiet",
            "--variant=essential",
            f"--include={_PACKAGES}",
            "bookworm",
            str(made),
        ]
        subprocess.run(command, check=True, timeout=_SECONDS)
        made.rename(tar)
    return tar
