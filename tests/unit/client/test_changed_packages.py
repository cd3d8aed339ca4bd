"""Which packages of a run are installed here in other versions."""

from __future__ import annotations

from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from resolute.client.reproduction import running
from resolute.client.schema.environments import EnvironmentRecord


def test_names_are_compared_whatever_their_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = []
    for name, version in (("boolean.py", "5.0"), ("Some_Package", "1.2")):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        installed.append(PathDistribution(info))
    monkeypatch.setattr(running, "distributions", lambda: installed)
    recorded = EnvironmentRecord(
        host_name="node",
        platform="Linux",
        python_version="3.11",
        python_path="/usr/bin/python3",
        packages={"boolean-py": "5.0", "some.package": "1.3", "absent": "2"},
        gpu_driver="",
        gpus=(),
        cuda_version="",
    )
    assert running.changed_packages(recorded) == [
        "absent missing instead of 2",
        "some.package 1.2 instead of 1.3",
    ]
