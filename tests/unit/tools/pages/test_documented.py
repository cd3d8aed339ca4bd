"""What the nightly list of documented commands takes: everything, or it says why not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import documented
import pytest


def test_each_target_of_the_makefile_is_run_or_left_out_for_a_reason() -> None:
    assert set(documented.MINUTES) | set(documented.LEFT_OUT) == set(documented.targets())
    assert not set(documented.MINUTES) & set(documented.LEFT_OUT)


def test_the_demo_is_first_and_what_removes_everything_is_last() -> None:
    names = [command.name for command in documented.commands()]
    assert names[:2] == ["demo", "setup"]
    assert names[-1] == "clean"
    assert "pages-pages" in names


def test_what_failed_is_in_the_table_with_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    good = documented.run(documented.Command("good", 1, "pwd\necho fine"), tmp_path / "clone")
    bad = documented.run(documented.Command("bad", 1, "echo 'a | b'\nfalse"), tmp_path / "clone")
    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert (tmp_path / "good.log").read_text() == f"{tmp_path}/clone\nfine\n"
    page = documented.table(
        {"good": good.text, "bad": bad.text}, {"turn": "elsewhere", "good": "not chosen this time"}
    )
    assert "| `pwd; echo fine` |" in page
    assert "**failed**: a \\| b |" in page
    assert "| `turn` | elsewhere |" in page
    assert "| README.md | `git clone" in page
    assert "not chosen" not in page  # it ran before


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    slow = documented.Command("slow", 1, "echo begun; sleep 600")
    row = documented.run(slow, tmp_path / "clone", times=0.0001)
    assert row.exit_code is None
    assert "**ended**" in row.text


def _repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text("Read me.\n")
    git = ("git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.org")
    for arguments in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "first")):
        subprocess.run([*git, *arguments], check=True)
    return folder


def test_a_run_of_some_keeps_what_the_others_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documented, "PLACE", tmp_path)
    monkeypatch.setattr(documented, "ROOT", _repository(tmp_path / "repository"))
    one, other = (documented.Command(name, 1, f"echo {name}") for name in ("one", "other"))
    monkeypatch.setattr(documented, "commands", lambda: [one, other])
    for names in (["other"], ["one"]):
        monkeypatch.setattr("sys.argv", ["documented.py", *names])
        documented.main()
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| `echo one`", "| `echo other`"]
    assert (tmp_path / "other.log").read_text() == "other\n"
