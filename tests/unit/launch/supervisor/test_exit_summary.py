from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.clocks import ManualClock

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.contracts.spool.format import Line, Stdtype
from resolute.runtime.redaction import Secrets
from resolute_launch.processes.memory_kills import MemoryFiles, MemoryKills
from resolute_launch.ranks.failures import (
    OutputTail,
    RankEnd,
    describe,
    first_rank_failure,
    record_rank_end,
)
from resolute_launch.supervisor import exit_summary
from resolute_launch.supervisor.exit_summary import Observations


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    return directory


def words(*lines: str, stdtype: Stdtype = Stdtype.STDERR) -> OutputTail:
    said = OutputTail()
    said.add([Line(0.0, stdtype, line.encode()) for line in lines])
    return said


def ended(
    run: RunDirectory,
    code: int,
    observations: Observations,
    said: OutputTail | None = None,
    secrets: Secrets | None = None,
) -> ExitRecord:
    return exit_summary.after_start(
        code,
        observations,
        run=run,
        flags=Flags(run.flags_file),
        words=said or OutputTail(),
        secrets=secrets or Secrets(),
        clock=ManualClock(5.0),
    )


def test_a_run_that_did_its_work_has_nothing_to_explain(run: RunDirectory) -> None:
    record = ended(run, 0, Observations(hook_finished=True, released=True))
    assert record == ExitRecord(exit_code=0, end_time=5.0)


def test_a_run_failed_when_its_first_rank_did_though_its_processes_ended_later(
    run: RunDirectory,
) -> None:
    observations = Observations(hook_finished=True, released=True)
    assert ended(run, 1, observations).end_time == 5.0
    for rank, time in ((0, 4.0), (1, 3.0)):
        record_rank_end(run, RankEnd(rank=rank, exit_code=1, time=time))
    assert ended(run, 1, observations).end_time == 3.0
    assert ended(run, 0, observations).end_time == 5.0


def test_an_acknowledgement_counts_with_and_without_a_signal(run: RunDirectory) -> None:
    Flags(run.flags_file).acknowledge()
    assert ended(run, 0, Observations(released=True)).acknowledged


def test_a_failure_after_force_is_explained_by_the_force(run: RunDirectory) -> None:
    observations = Observations(released=True, preempted=True, forced="it took too long")
    record = ended(run, 143, observations, words("Traceback"))
    assert (record.failure, record.acknowledged) == ("it took too long", False)


def test_who_dies_of_the_sigterm_of_a_machine_that_asked_to_exit_has_not_failed(run: RunDirectory) -> None:
    record = ended(run, 143, Observations(released=True, preempted=True), words("Terminated"))
    assert (record.exit_code, record.acknowledged, record.failure) == (143, True, "")
    unasked = ended(run, 143, Observations(released=True), words("Terminated"))
    assert not unasked.acknowledged
    assert unasked.failure


def test_leaving_well_only_at_sigterm_is_leaving_because_of_the_signal(run: RunDirectory) -> None:
    forced = "it took too long"
    assert ended(run, 0, Observations(released=True, preempted=True, forced=forced)).acknowledged
    assert not ended(run, 0, Observations(released=True, forced=forced)).acknowledged


def test_an_obstacle_keeps_a_run_from_starting() -> None:
    record = exit_summary.before_start(Observations(start_failure="no disk"), clock=ManualClock(5.0))
    assert record == ExitRecord(exit_code=1, failure="no disk", failed_before_entrypoint=True, end_time=5.0)


def test_a_run_that_was_preempted_before_it_began_has_obeyed() -> None:
    record = exit_summary.before_start(Observations(preempted=True), clock=ManualClock(5.0))
    assert record == ExitRecord(exit_code=0, acknowledged=True, end_time=5.0)


def test_a_run_that_was_killed_before_it_began_has_not() -> None:
    observations = Observations(preempted=True, forced="killed")
    assert exit_summary.before_start(observations, clock=ManualClock()).exit_code == 137


@pytest.mark.parametrize("exit_code", [0, 137])
def test_what_the_code_said_when_it_left_early_is_why_it_ended(run: RunDirectory, exit_code: int) -> None:
    run.write_early_exit(EarlyExit("INVALID_HP", "3 heads do not divide 64"))
    forced = "it took more than 10 s to leave" if exit_code else ""
    record = ended(run, exit_code, Observations(released=True, forced=forced))
    assert (record.early_exit_reason, record.failure) == ("INVALID_HP", "3 heads do not divide 64")


@pytest.mark.parametrize("before", range(480, 500))
def test_what_the_code_said_of_its_end_shows_no_secret_nor_a_part_of_one(
    run: RunDirectory, before: int
) -> None:
    secrets = Secrets()
    secrets.add_printed("hf_0123456789\nsecond line of it")
    run.write_early_exit(EarlyExit("INVALID_HP", "x" * before + "hf_0123456789\nsecond line of it"))
    record = ended(run, 0, Observations(released=True), secrets=secrets)
    assert record.failure.startswith("x" * before)
    assert "hf_" not in record.failure
    assert "sec" not in record.failure


def test_the_last_forty_lines_are_kept_of_each_rank() -> None:
    said = words(*(f"[rank={i % 2}] line {i}" for i in range(200)))
    assert said.of(1).splitlines() == [f"line {i}" for i in range(121, 200, 2)]


def test_who_says_nothing_of_itself_is_explained_by_what_all_said() -> None:
    assert words("something broke").of(3) == "something broke"
    assert words("on stdout", stdtype=Stdtype.STDOUT).of(None) == "on stdout"


def test_what_only_looks_like_a_rank_is_kept_as_it_is() -> None:
    line = f"[rank={'9' * 5000}] broke"
    assert words(line).of(None) == line


def test_very_long_last_words_are_cut() -> None:
    said = words(*["x" * 8000] * 10)
    assert len(said.of(None)) < 17_000
    assert said.of(None).startswith("…")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1, "ended with exit code 1"),
        (127, "command not found"),
        (128 + signal.SIGSEGV, "was ended by SIGSEGV"),
        (137, "run out of memory"),
        (255, "ended with exit code 255"),
    ],
)
def test_exit_codes_are_put_into_words(code: int, text: str) -> None:
    assert text in describe(code, OutputTail(), None)


def test_the_rank_that_failed_first_is_named(run: RunDirectory) -> None:
    record_rank_end(run, RankEnd(rank=3, exit_code=7, time=1.0))
    record_rank_end(run, RankEnd(rank=0, exit_code=143, time=2.0))
    said = words("[rank=0] terminated", "[rank=3] the real reason")
    assert describe(1, said, first_rank_failure(run)) == "rank 3 ended with exit code 7\nthe real reason"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"rank": 1, "exit_code": 1, "time": Infinity}',
        '{"rank": 1, "exit_code": 1, "time": "noon"}',
        '{"rank": 1, "exit_code": null, "time": 1}',
        '{"rank": 1, "exit_code": 1, "time": 1, "attempt": 1e999}',
    ],
)
def test_what_a_script_has_damaged_is_no_failure_of_a_rank(run: RunDirectory, content: str) -> None:
    failure = RankEnd(rank=0, exit_code=3, time=2.0)
    record_rank_end(run, failure)
    (run.path / "ended" / "rank1.json").write_text(content)
    (run.path / "ended" / "rank2.json").mkdir()
    assert first_rank_failure(run) == failure


def test_ranks_that_were_started_again_speak_by_their_latest_failure(run: RunDirectory) -> None:
    for rank, time, attempt in ((3, 1.0, 0), (1, 6.0, 1), (2, 5.0, 1)):
        record_rank_end(run, RankEnd(rank=rank, exit_code=7, time=time, attempt=attempt))
    first = first_rank_failure(run)
    assert first is not None
    assert first.rank == 2


def test_a_kill_for_lack_of_memory_is_named_where_the_kernel_counted_one(
    run: RunDirectory, tmp_path: Path
) -> None:
    counter, total = tmp_path / "vmstat", tmp_path / "meminfo"
    counter.write_text("nr_free_pages 7\noom_kill 4\n")
    total.write_text("MemTotal:       16777216 kB\n")
    files = MemoryFiles(machine=counter, total=total, group=tmp_path)
    observed = Observations(released=True, memory_kills=MemoryKills(files))
    assert "may have run out of memory" in ended(run, 128 + signal.SIGKILL, observed).failure
    counter.write_text("nr_free_pages 7\noom_kill 5\n")
    failure = ended(run, 128 + signal.SIGKILL, observed).failure
    assert (
        "was killed for lack of memory: the kernel ended a process of this machine, which has 16.0 GiB"
        in failure
    )
    assert "memory" not in ended(run, 1, observed).failure
    counter.write_text("nr_free_pages 7\noom_kill 0\n")
    assert observed.memory_kills.explain() == ""
    missing = MemoryFiles(machine=tmp_path / "no", total=tmp_path / "no", group=tmp_path / "no")
    assert MemoryKills(missing).explain() == ""


def test_what_a_container_used_of_its_limit_is_said(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 0\n")
    (tmp_path / "memory.max").write_text(f"{32 << 30}\n")
    (tmp_path / "memory.peak").write_text(f"{31 << 30}\n")
    observed = Observations(released=True, memory_kills=MemoryKills(MemoryFiles(group=tmp_path)))
    (tmp_path / "memory.events").write_text("oom 2\noom_kill 1\n")
    failure = ended(run, 128 + signal.SIGKILL, observed).failure
    assert "the container used up to 31.0 GiB of its limit of 32.0 GiB; use smaller batches" in failure
