"""What resource manager and supervisor leave for each other in a run directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock, is_locked
from resolute.errors import ConflictError, InvalidArgumentError


def test_an_order_reads_back_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    order = LaunchOrder(
        allocation_id="a", master="h:1", token="secret", slot_ids=(1, 2), devices=("GPU-x",), agent_id="m"
    )
    order.write(tmp_path / "launch.json")
    assert LaunchOrder.read(tmp_path / "launch.json") == order
    assert (tmp_path / "launch.json").stat().st_mode & 0o777 == 0o600


def test_an_order_of_a_newer_release_is_understood_as_far_as_known() -> None:
    order = LaunchOrder.from_json({"allocation_id": "a", "master": "h:1", "token": "t", "new_field": 1})
    assert order.allocation_id == "a"


def test_an_order_that_is_missing_or_incomplete_says_so(tmp_path: Path) -> None:
    path = tmp_path / "launch.json"
    with pytest.raises(InvalidArgumentError, match="no launch order"):
        LaunchOrder.read(path)
    path.write_text("[]")
    with pytest.raises(InvalidArgumentError, match="is not a launch order"):
        LaunchOrder.read(path)
    path.write_text("{")
    with pytest.raises(InvalidArgumentError, match="is not a launch order"):
        LaunchOrder.read(path)
    path.write_text('{"allocation_id": "a"}')
    with pytest.raises(InvalidArgumentError, match="master"):
        LaunchOrder.read(path)


def test_an_exit_record_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    assert ExitRecord.read(path) is None
    record = ExitRecord(exit_code=3, failure="it broke", early_exit_reason="INVALID_HP", end_time=1.5)
    record.write(path)
    assert ExitRecord.read(path) == record
    path.write_text("{}")
    with pytest.raises(ValueError, match="no exit record"):
        ExitRecord.read(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"exit_code": "3"},
        {"exit_code": True},
        {"exit_code": 2**31},
        {"acknowledged": "no"},
        {"early_exit_reason": "NO_REASON"},
        {"failure": 7},
        {"end_time": -1},
        {"initialized_at": float("nan")},
        {"gpu_usage": []},
        {"gpu_usage": {"busy_seconds": 1.0}},
        {"gpu_usage": {"energy_joules": None, "busy_seconds": 10**400, "measured_seconds": 1.0}},
    ],
)
def test_an_exit_record_with_values_that_none_has_is_none(tmp_path: Path, wrong: dict[str, object]) -> None:
    path = tmp_path / "exit.json"
    path.write_text(json.dumps({"exit_code": 0, **wrong}))
    with pytest.raises(ValueError, match="no exit record"):
        ExitRecord.read(path)


def test_of_an_exit_record_the_end_of_a_long_failure_and_unknown_fields_are_no_trouble(
    tmp_path: Path,
) -> None:
    path = tmp_path / "exit.json"
    path.write_text(json.dumps({"exit_code": 1, "failure": "x" * 100_000 + "a\0b\ud800c", "later": [1]}))
    record = ExitRecord.read(path)
    assert record is not None
    assert ascii(record.failure[-5:]) == ascii("a\ufffdb?c")
    assert len(record.failure) == 64 * 1024


def test_gpu_usage_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    usage = GpuUsage(energy_joules=None, busy_seconds=2.5, measured_seconds=10)
    record = ExitRecord(exit_code=0, gpu_usage=usage)
    record.write(path)
    assert ExitRecord.read(path) == record


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    lock = RunLock.acquire(path)
    assert is_locked(path)
    with pytest.raises(ConflictError, match="has a supervisor already"):
        RunLock.acquire(path)
    lock.release()
    assert not is_locked(path)
    RunLock.acquire(path).release()


def test_a_lock_that_is_handed_on_is_never_free_in_between(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = RunLock.acquire(path)
    code = (
        "import sys, pathlib; from resolute.contracts.run.lock import RunLock;"
        "lock = RunLock.inherit(int(sys.argv[1]), pathlib.Path(sys.argv[2]));"
        "print('mine', flush=True); input()"
    )
    heir = subprocess.Popen(
        [sys.executable, "-c", code, str(lock.descriptor), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(lock.descriptor,),
    )
    with heir:
        lock.release()
        assert is_locked(path)
        assert heir.stdout is not None
        assert heir.stdout.readline() == b"mine\n"
        assert is_locked(path)
        heir.kill()
        heir.wait()
    assert not is_locked(path)


def test_processes_that_the_holder_starts_do_not_keep_its_lock(tmp_path: Path) -> None:
    lock = RunLock.acquire(tmp_path / "lock")
    child = subprocess.Popen(["sleep", "60"])
    try:
        lock.release()
        assert not is_locked(tmp_path / "lock")
    finally:
        child.kill()
        child.wait()


def test_a_descriptor_of_something_else_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "other").touch()
    descriptor = os.open(tmp_path / "other", os.O_RDONLY)
    try:
        with pytest.raises(ConflictError, match="is not the lock"):
            RunLock.inherit(descriptor, tmp_path / "lock")
        with pytest.raises(ConflictError, match="is not the lock"):
            RunLock.inherit(999, tmp_path / "lock")
    finally:
        os.close(descriptor)
