"""The directory that trial and supervisor share."""

import json
import os
import stat
from pathlib import Path

import pytest

from resolute.contracts.files.atomic_files import MalformedFileError, read_json, write_atomically
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.shared_memory.flags import FLAGS_SIZE, Flags


def test_a_run_directory_is_the_users_own(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "runs" / "a" / "0")
    run.prepare()
    run.prepare()
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert run.spool.is_dir()
    assert run.flags_file.stat().st_size == FLAGS_SIZE


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is this machine's directory for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_what_lies_elsewhere_goes_when_it_is_told_to(tmp_path: Path, elsewhere: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.prepare()
    folder, file, kept, later = (
        elsewhere / f"resolute-{name}" for name in ("folder", "file", "kept", "later")
    )
    (folder / "sub").mkdir(parents=True)
    (folder / "link").symlink_to(kept)
    for path in (file, kept):
        path.write_text("x")
    for path in (folder, file, later, folder):
        run.record_external_resource(path)
    run.remove_external_resources()
    assert [path.name for path in elsewhere.iterdir()] == ["resolute-kept"]
    # What was noted before it came is noted no more.
    later.write_text("x")
    run.remove_external_resources()
    assert later.exists()


@pytest.mark.parametrize(
    "claim",
    [
        "{home}/resolute-data",
        "{tmp}/others",
        "{tmp}/resolute-theirs/data",
        "{tmp}/resolute-mine/../others",
        "{tmp}/resolute-mine/../../home/resolute-data",
        "{tmp}/./../home",
        "../../tmp/others",
        "{tmp}/resolute-link/resolute-data",
    ],
)
def test_only_what_a_run_leaves_there_is_removed_on_its_word(
    tmp_path: Path, elsewhere: Path, claim: str
) -> None:
    run, home = RunDirectory(tmp_path / "run"), tmp_path / "home"
    run.prepare()
    for folder in (elsewhere / "others", elsewhere / "resolute-mine", elsewhere / "resolute-theirs", home):
        folder.mkdir()
        (folder / "data").write_text("x")
    (home / "resolute-data").mkdir()
    (elsewhere / "resolute-link").symlink_to(home)
    before = sorted(tmp_path.rglob("*"))
    run.external_resources.mkdir()
    (run.external_resources / "claim").symlink_to(claim.format(home=home, tmp=elsewhere))
    run.remove_external_resources()
    assert sorted(tmp_path.rglob("*")) == sorted([*before, run.external_resources])


def test_what_another_user_owns_stays(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, theirs = RunDirectory(tmp_path / "run"), elsewhere / "resolute-theirs"
    run.prepare()
    theirs.mkdir()
    run.record_external_resource(theirs)
    uid = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: uid + 1)
    run.remove_external_resources()
    assert theirs.exists()


def test_notes_that_lie_elsewhere_themselves_are_none(tmp_path: Path, elsewhere: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.prepare()
    (elsewhere / "others").write_text("x")
    run.external_resources.symlink_to(elsewhere)
    run.remove_external_resources()
    assert (elsewhere / "others").exists()


def test_things_of_one_name_in_different_places_both_go(tmp_path: Path, elsewhere: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.prepare()
    mine = elsewhere / "resolute-mine"
    mine.mkdir()
    run.record_external_resource(tmp_path / "resolute-mine")
    run.record_external_resource(mine)
    run.remove_external_resources()
    assert not mine.exists()


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RESOLUTE_RUN_DIR", raising=False)
    assert RunDirectory.from_environment() is None
    monkeypatch.setenv("RESOLUTE_RUN_DIR", str(tmp_path))
    found = RunDirectory.from_environment()
    assert found is not None
    assert found.path == tmp_path


def test_a_file_is_replaced_whole_and_with_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_atomically(path, "one", sync=True)
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["token"]


def test_the_token_of_the_moment_is_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.read_token() == ""
    write_atomically(run.token_file, "abc\n")
    assert run.read_token() == "abc"


def test_the_first_reason_of_an_early_exit_counts(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert EarlyExit.read(run.early_exit_file) == EarlyExit()
    assert run.write_early_exit(EarlyExit("INVALID_HP", "too deep"))
    assert not run.write_early_exit(EarlyExit("USER_REQUESTED_STOP"))
    assert EarlyExit.read(run.early_exit_file) == EarlyExit("INVALID_HP", "too deep")


@pytest.mark.parametrize(
    ("content", "early_exit"),
    [
        ({"reason": "INVALID_HP"}, EarlyExit("INVALID_HP")),
        ({"reason": "EXITED_REASON_INIT_INVALID_HP"}, EarlyExit("INIT_INVALID_HP")),
        ({"reason": "EARLY_EXIT_REASON_USER_REQUESTED_STOP"}, EarlyExit("USER_REQUESTED_STOP")),
        (
            {"reason": "INVALID_HP", "message": "a\x1b[2J\n\tb\x00c\ud800\u202ed"},
            EarlyExit("INVALID_HP", "a [2J b c d"),
        ),
        ({"reason": "INVALID_HP", "message": "é" * 501}, EarlyExit("INVALID_HP", "é" * 499 + "…")),
        ({"reason": "INVALID_HP", "message": ["too", "deep"]}, EarlyExit("INVALID_HP")),
        ({"reason": "NO_SUCH_REASON", "message": "too deep"}, EarlyExit()),
        ({"reason": ["INVALID_HP"]}, EarlyExit()),
        ({}, EarlyExit()),
        ([], EarlyExit()),
    ],
)
def test_an_early_exit_has_a_reason_of_the_contract_and_one_line(
    tmp_path: Path, content: object, early_exit: EarlyExit
) -> None:
    path = tmp_path / "early_exit.json"
    path.write_text(json.dumps(content))
    assert EarlyExit.read(path) == early_exit


def test_a_file_that_is_cut_off_gives_no_early_exit(tmp_path: Path) -> None:
    path = tmp_path / "early_exit.json"
    path.write_text('{"rea')
    assert EarlyExit.read(path) == EarlyExit()


def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    assert read_json(path) is None
    for content in ("[1]", "{", ""):
        path.write_text(content)
        with pytest.raises(MalformedFileError, match=r"exit\.json"):
            read_json(path)


def test_both_sides_see_the_flags_at_once(tmp_path: Path) -> None:
    supervisor, trial = Flags.create(tmp_path / "flags"), Flags(tmp_path / "flags")
    supervisor.set_signal(revision=4, preempt=True, kill=True, reason=2, deadline=1.5)
    assert (trial.revision, trial.preempt, trial.kill, trial.reason, trial.deadline) == (
        4,
        True,
        True,
        2,
        1.5,
    )
    trial.acknowledge()
    assert supervisor.acknowledged
    assert supervisor.acknowledged_revision == 4
    supervisor.close()
    trial.close()


def test_creating_flags_again_keeps_them(tmp_path: Path) -> None:
    Flags.create(tmp_path / "flags").set_signal(revision=1, preempt=True)
    assert Flags.create(tmp_path / "flags").preempt


def test_a_process_can_acknowledge_without_a_signal(tmp_path: Path) -> None:
    flags = Flags.create(tmp_path / "flags")
    flags.acknowledge()
    assert flags.acknowledged
    assert flags.acknowledged_revision == 0
