"""What a start says on a disk that is full."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy.exc import OperationalError

from resolute.errors import QuotaError, UnavailableError
from resolute_embedded import cli
from resolute_embedded.home.room import full_home_errors

FULL = (
    "the disk of {home} is full; free some space there, or let RESOLUTE_HOME name a directory on another disk"
)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OperationalError("COMMIT", None, Exception("database or disk is full")),
    ],
    ids=["a file", "a database"],
)
def test_one_sentence_names_the_home_and_what_to_do(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(QuotaError, match=FULL.format(home=tmp_path)), full_home_errors(tmp_path):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), ValueError("disk"), UnavailableError("away")])
def test_what_is_no_full_disk_stays_as_it_is(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error), match=str(error)[-4:]), full_home_errors(tmp_path):
        raise error


def test_where_the_reason_itself_had_no_room_the_start_gives_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "executable", "false")  # ends with 1 and prints nothing
    for full, reason in (([], "it printed nothing"), (["full"], FULL.format(home=tmp_path / "home"))):
        monkeypatch.setattr(cli, "full_disks", lambda _, full=full: full)
        outcome = CliRunner().invoke(cli.up, ["--detach"])
        assert isinstance(outcome.exception, UnavailableError)
        assert str(outcome.exception).startswith(f"the cluster did not start:\n{reason}")
