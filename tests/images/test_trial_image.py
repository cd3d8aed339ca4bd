"""The image of trials: a startup hook may install packages, whoever trials run as."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from compose_demo.images import Images
from support.daemons.containers import Podman

_FILES = {
    "hooked.py": "INSTALLED = True\n",
    "hooked-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hooked\nVersion: 1.0\n",
    "hooked-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "hooked-1.0.dist-info/entry_points.txt": "[console_scripts]\nhooked = hooked:INSTALLED\n",
    "hooked-1.0.dist-info/RECORD": "",
}


@pytest.mark.parametrize("user", ["10001:10001", "10002:10002"])
def test_pip_installs_as_any_user(podman: Podman, images: Images, tmp_path: Path, user: str) -> None:
    wheel = tmp_path / "hooked-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in _FILES.items():
            archive.writestr(name, text)
    wheel.chmod(0o644)
    script = f"pip install --no-index /{wheel.name} && python3 -c 'import hooked' && command -v hooked"
    options = [f"--user={user}", "--cap-drop=all", "--network=none", f"--volume={wheel}:/{wheel.name}:ro"]
    said = podman.run("run", "--rm", *options, images.trial, "sh", "-euc", script)
    assert "/opt/trial/bin/hooked" in said
