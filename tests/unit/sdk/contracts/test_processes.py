from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.waiting import wait_until

from resolute.contracts.processes import ProcessIdentity, ProcessTree, open_pidfd


@contextmanager
def running(script: str, *, variable: str = "", session: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A shell that prints the ids of its children, one a line, then ``ready``."""
    environment = dict(os.environ)
    if variable:
        name, _, value = variable.partition("=")
        environment[name] = value
    process = subprocess.Popen(
        ["/bin/bash", "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=session,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def pids(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout
    found = []
    for line in process.stdout:
        if line.strip() == "ready":
            break
        found.append(int(line))
    return found


def alive(pid: int) -> bool:
    identity = ProcessIdentity.of(pid)
    return identity is not None and identity.is_alive()


def test_an_identity_survives_as_json_and_names_a_living_process() -> None:
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    assert mine.is_alive()
    assert ProcessIdentity.from_json(mine.to_json()) == mine


@pytest.mark.parametrize("content", [None, {}, {"pid": 1}, {"pid": "x", "start_time": 1, "boot_id": ""}])
def test_content_that_names_no_process_gives_none(content: dict[str, object] | None) -> None:
    assert ProcessIdentity.from_json(content) is None


def test_a_process_that_ended_is_not_alive_even_before_it_was_waited_for() -> None:
    with running("echo ready") as process:
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        wait_until(lambda: not identity.is_alive())
        process.wait()
        assert ProcessIdentity.of(process.pid) is None
        assert not identity.send(signal.SIGKILL)


def test_a_program_with_a_strange_name_has_an_identity(tmp_path: Path) -> None:
    strange = tmp_path / "a) R (b\nc"
    strange.symlink_to(sys.executable)
    with subprocess.Popen([strange, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        assert identity.is_alive()
        process.kill()


def test_a_stranger_with_the_same_id_is_never_signalled() -> None:
    with running("echo ready; sleep 60") as process:
        pids(process)
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        for stranger in (
            replace(identity, start_time=identity.start_time - 1),
            replace(identity, boot_id="another boot"),
        ):
            assert not stranger.is_alive()
            assert not stranger.send(signal.SIGKILL)
            assert ProcessTree(leader=stranger, variable=b"NOBODY_HAS=this").members() == []
        assert process.poll() is None
        assert identity.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_without_pidfds_a_signal_still_reaches_only_the_same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert open_pidfd(os.getpid()) is None
    with running("echo ready; sleep 60") as process:
        pids(process)
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        assert not replace(identity, start_time=0).send(signal.SIGKILL)
        assert identity.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_a_family_has_its_session_its_group_its_descendants_and_the_marked_and_ends_all(
    tmp_path: Path,
) -> None:
    mark = f"RESOLUTE_TEST_FAMILY={tmp_path}"
    script = """
        sleep 61 & echo $!
        env -i sleep 62 & echo $!
        setsid sleep 63 & echo $!
        setsid env -i bash -c 'sleep 64; true' & echo $!
        (setsid sleep 65 & echo $!)
        echo ready; wait
    """
    with running("echo ready; sleep 60") as stranger, running(script, variable=mark) as process:
        pids(stranger)
        children = pids(process)
        assert len(children) == 5
        family = ProcessTree(leader=ProcessIdentity.of(process.pid), variable=mark.encode())
        wait_until(lambda: {process.pid, *children} <= {m.pid for m in family.members()})
        assert stranger.pid not in {m.pid for m in family.members()}
        assert family.end(timeout=10) == []
        assert not any(alive(pid) for pid in [process.pid, *children])
        assert stranger.poll() is None


def test_the_orphans_of_a_dead_leader_are_found_by_their_mark(tmp_path: Path) -> None:
    mark = f"RESOLUTE_TEST_FAMILY={tmp_path}"
    script = "sleep 61 & echo $!; env -i sleep 62 & echo $!; echo ready; wait"
    with running(script, variable=mark) as process:
        children = pids(process)
        leader = ProcessIdentity.of(process.pid)
        process.kill()
        process.wait()
        family = ProcessTree(leader=leader, variable=mark.encode())
        # The second has no mark any more, but shares the session with one that has.
        assert {m.pid for m in family.members()} == set(children)
        assert family.end(timeout=10) == []
        assert not any(alive(pid) for pid in children)


def test_who_was_killed_is_left_until_it_has_ended_although_the_tree_has_lost_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running("echo ready; sleep 60") as process:
        pids(process)
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        seen = iter([[identity]])
        monkeypatch.setattr(ProcessTree, "members", lambda _: next(seen, []))
        monkeypatch.setattr(ProcessIdentity, "send", lambda *_: True)  # it takes its time to end
        tree = ProcessTree(leader=identity, variable=b"NOBODY_HAS=this")
        assert tree.end(timeout=0.05) == [identity]


def test_a_dead_leaders_session_without_any_mark_is_left_alone(tmp_path: Path) -> None:
    with running("sleep 61 & echo $!; echo ready; wait") as process:
        (child,) = pids(process)
        leader = ProcessIdentity.of(process.pid)
        process.kill()
        process.wait()
        try:
            assert ProcessTree(leader=leader, variable=b"NOBODY_HAS=this").members() == []
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_caller_and_its_ancestors_are_never_members(tmp_path: Path) -> None:
    code = (
        "import os;from resolute.contracts.processes import *;"
        "f=ProcessTree(leader=ProcessIdentity.of(os.getsid(0)),variable=b'RESOLUTE_TEST_FAMILY=own');"
        "print([m.pid for m in f.members()])"
    )
    script = f'sleep 61 & echo $!; echo ready; "{sys.executable}" -c "{code}"; true'
    with running(script, variable="RESOLUTE_TEST_FAMILY=own") as process:
        (child,) = pids(process)
        assert process.stdout
        try:
            assert process.stdout.readline().strip() == f"[{child}]"
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_family_that_forks_while_it_is_ended_ends_whole(tmp_path: Path) -> None:
    mark = f"RESOLUTE_TEST_FAMILY={tmp_path}"
    script = "f() { while true; do (sleep 0.05; sleep 61) & sleep 0.01; done; }; f & f & echo ready; wait"
    with running(script, variable=mark) as process:
        pids(process)
        family = ProcessTree(leader=ProcessIdentity.of(process.pid), variable=mark.encode())
        assert family.end(timeout=10) == []
        assert family.members() == []
