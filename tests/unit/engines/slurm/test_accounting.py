"""Reading what Slurm's accounting prints, and how seldom it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clocks import ManualClock

from resolute.errors import DataLossError, UnavailableError
from resolute_engines.slurm.commands.accounting import Accounting, ended_jobs
from resolute_engines.slurm.commands.runner import SlurmCommands

_AWAY = "echo Problem talking to the database: Connection refused >&2; exit 1"


class Asked:
    """Accounting behind a ``sacct`` of the test's own, which counts.

    Args:
        directory: Holds it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.clock = ManualClock()
        commands = SlurmCommands(environment={"PATH": f"{directory}:/usr/bin:/bin"})
        self.accounting = Accounting(commands, clock=self.clock)

    def answer(self, does: str) -> None:
        """Has it do that from now on."""
        path = self._directory / "sacct"
        path.write_text(f"#!/bin/sh\necho call >> {self._directory}/calls\n{does}\n")
        path.chmod(0o700)

    def find(self, name: str = "a") -> str:
        """What is said of a job: its state, nothing, or that it is not known yet."""
        try:
            job = asyncio.run(self.accounting.find(name))
        except UnavailableError:
            return "not yet"
        return job.slurm_state if job else "nothing"

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len((self._directory / "calls").read_text().splitlines())


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Accounting, which is away."""
    asked = Asked(tmp_path)
    asked.answer(_AWAY)
    return asked


def test_states_and_reasons_of_ended_jobs_are_read() -> None:
    lines = "9|CANCELLED by 1000|0:0|a\n7|FAILED|3:0|a\n8|NODE_FAIL|0:0|a\n"
    assert [(job.id, job.slurm_state, job.reason) for job in ended_jobs(lines, name="a")] == [
        (9, "CANCELLED", "by 1000"),
        (7, "FAILED", "exit code 3:0"),
        (8, "NODE_FAIL", ""),
    ]


@pytest.mark.parametrize("line", ["7|RUNNING|0:0|a", "7|FAILED|1:0|A", "7|FAILED|1:0|a|b", "7|FAILED|1:0|a "])
def test_what_has_not_ended_and_other_names_are_left_out(line: str) -> None:
    assert ended_jobs(line, name="a") == []


@pytest.mark.parametrize("line", ["x|FAILED|1:0|a", "7|FAILED|a", "", "7_1|FAILED|1:0|a"])
def test_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(DataLossError, match="not a job"):
        ended_jobs(f"{line}\n", name="a")


def test_while_none_is_answered_few_questions_are_asked_whatever_the_number_of_jobs(asked: Asked) -> None:
    for _ in range(280):
        assert {asked.find(f"job-{number}") for number in range(3)} == {"not yet"}
        asked.clock.advance(1.0)
    assert asked.calls == 14
    asked.clock.advance(60.0)
    assert asked.find("job-0") == "nothing"
    # A job that is asked for later is waited for anew.
    assert asked.find("job-9") == "not yet"


def test_end_of_which_accounting_has_not_heard_is_waited_for(asked: Asked) -> None:
    asked.answer("")
    assert asked.find() == "not yet"
    assert asked.find("b") == "not yet"
    assert asked.calls == 2
    asked.answer("echo '7|TIMEOUT|0:0|a'")
    assert asked.find() == "not yet"
    asked.clock.advance(15.0)
    assert asked.find() == "TIMEOUT"
    asked.answer("")
    asked.clock.advance(400.0)
    assert asked.find("b") == "nothing"
    assert asked.calls == 4
