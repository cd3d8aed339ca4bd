"""The command that installs more leads from where this installation came."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from resolute.contracts.distribution import NAME, install_command


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed distribution, found before the one that is here."""
    noted = tmp_path / "site/resolute_train-9.9.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 9.9\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    return noted


def test_a_clone_is_named_as_long_as_it_is_there(installed: Path, tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    origin = {"url": clone.as_uri(), "dir_info": {}}
    (installed / "direct_url.json").write_text(json.dumps(origin))
    assert install_command("server", "gateway") == f"pip install '{clone}[server,gateway]'"
    origin["dir_info"] = {"editable": True}
    (installed / "direct_url.json").write_text(json.dumps(origin))
    assert install_command("mcp") == f"pip install --editable '{clone}[mcp]'"
    clone.rmdir()
    assert install_command("mcp") == "pip install 'resolute-train[mcp]'"


def test_what_came_from_an_index_comes_from_there_again(installed: Path) -> None:
    assert install_command("server") == "pip install 'resolute-train[server]'"
    (installed / "direct_url.json").write_text('{"url": "https://wheels.example/r.whl", "archive_info": {}}')
    assert install_command("server") == "pip install 'resolute-train[server]'"
