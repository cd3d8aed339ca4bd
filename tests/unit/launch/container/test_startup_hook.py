"""Hooks as editors of other systems save them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_launch.container.startup_hook import mend

TEXT = "export A='x y'\nif true; then\n  echo \"$A\"\nfi\n"


@pytest.mark.parametrize(
    ("written", "left_out"),
    [
        (TEXT.encode(), ""),
        (TEXT.encode("utf-8-sig"), "byte order mark"),
        (TEXT.replace("\n", "\r\n").encode(), "carriage returns"),
        (TEXT.replace("\n", "\r\n").encode("utf-8-sig"), "byte order mark and its carriage returns"),
        (b"", ""),
    ],
)
def test_what_no_shell_reads_is_left_out(tmp_path: Path, written: bytes, left_out: str) -> None:
    hook = tmp_path / "startup-hook.sh"
    hook.write_bytes(written)
    assert mend(hook) == left_out
    command = ["bash", "-ec", ". ./startup-hook.sh"]
    ran = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("x y\n" if written else "", "")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-16-le"])
def test_other_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    hook = tmp_path / "startup-hook.sh"
    mark = "" if encoding in {"utf-16", "utf-32"} else "\ufeff"
    hook.write_bytes((mark + TEXT).encode(encoding))
    with pytest.raises(InvalidArgumentError, match=r"startup-hook\.sh is UTF-16 or UTF-32.*save it as UTF-8"):
        mend(hook)


def test_a_hook_that_is_a_link_leaves_alone_what_it_leads_to(tmp_path: Path) -> None:
    shared = tmp_path / "shared.sh"
    shared.write_bytes(TEXT.replace("\n", "\r\n").encode())
    (tmp_path / "startup-hook.sh").symlink_to(shared)
    mend(tmp_path / "startup-hook.sh")
    assert b"\r" in shared.read_bytes()
    assert b"\r" not in (tmp_path / "startup-hook.sh").read_bytes()
