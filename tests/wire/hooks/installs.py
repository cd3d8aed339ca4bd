"""Wheels that hooks install."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, *, requires: str = "") -> Path:
    """Makes a wheel with one module, which has ``VERSION``, and a script of its name that prints it."""
    folder.mkdir(exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    need = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{module}.py": f"VERSION = '{version}'\ndef main():\n    print(VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{need}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}={module}:main\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
