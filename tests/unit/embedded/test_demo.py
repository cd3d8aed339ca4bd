"""What `resolute demo` says at its end."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from resolute_embedded import demo


def test_it_names_a_command_that_the_shell_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = Path(sys.executable).with_name("resolute")
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path))
    for path, expected in ((installed.parent, "resolute"), (tmp_path, str(installed))):
        monkeypatch.setenv("PATH", str(path))
        demo._say_what_to_look_at(Mock(), tmp_path, kept=False)
        assert f"a script of your own: `{expected} up --detach`" in capsys.readouterr().out
