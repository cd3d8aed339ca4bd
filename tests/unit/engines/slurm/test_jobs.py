"""Reading what Slurm's commands print, and what they complain of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from resolute.errors import DataLossError, FailedPreconditionError, QuotaError
from resolute_engines.slurm.commands.jobs import JobState, parse_jobs, parse_nodes
from resolute_engines.slurm.commands.sbatch_errors import refusal

FAILED = "sbatch: error: Batch job submission failed: "
VIOLATES = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


def named(prefix: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(prefix)


def test_jobs_come_by_number() -> None:
    waiting, failed = parse_jobs(
        "10|FAILED|NonZeroExitCode|run-b|\n9|PENDING|Resources|run-a|\n\n", named=named("run-")
    )
    assert (waiting.id, waiting.name, waiting.state, waiting.reason) == (
        9,
        "run-a",
        JobState.QUEUED,
        "Resources",
    )
    assert (failed.state, failed.slurm_state, failed.reason) == (JobState.ENDED, "FAILED", "NonZeroExitCode")


@pytest.mark.parametrize(
    "line", ["7|RUNNING|None|a|b|", "8|RUNNING|None|two", "lines|", "x|DREAMING|None|other|", "|||", "other"]
)
def test_lines_of_other_jobs_are_not_looked_at(line: str) -> None:
    (job,) = parse_jobs(f"{line}\n1|RUNNING|None|run-a|\n", named=named("run-"))
    assert (job.id, job.name, job.reason) == (1, "run-a", "")


def test_job_that_is_being_ended_still_runs_as_does_one_in_a_state_of_newer_versions() -> None:
    ending, dreaming = parse_jobs("1|COMPLETING|None|a|\n2|DREAMING|None|a|\n", named=named("a"))
    assert (ending.state, ending.slurm_state) == (JobState.RUNNING, "COMPLETING")
    assert (dreaming.state, dreaming.slurm_state) == (JobState.RUNNING, "DREAMING")


@pytest.mark.parametrize("line", ["one|RUNNING|None|a|", "1|RUNNING|a|", "1|a|"])
def test_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(DataLossError, match="not a job"):
        parse_jobs(line, named=named("a"))


def test_node_of_two_partitions_counts_once() -> None:
    one, two = parse_nodes("n2|idle|gpu:a100:8|\nn1|mixed|(null)|\nn2|idle|gpu:a100:8|\n")
    assert [(node.name, node.usable) for node in (one, two)] == [("n1", True), ("n2", True)]


@pytest.mark.parametrize("state", ["down", "down*", "idle*", "drained", "draining", "maint", "powered_down"])
def test_node_that_takes_no_jobs_is_not_usable(state: str) -> None:
    (node,) = parse_nodes(f"n1|{state}|(null)|")
    assert not node.usable


@pytest.mark.parametrize(
    "complaint",
    [
        f"{FAILED}Socket timed out on send/recv operation",
        f"{FAILED}Zero Bytes were transmitted or received",
        f"{FAILED}Slurm backup controller in standby mode",
        f"{FAILED}Message receive failure",
        f"{FAILED}Unable to contact slurm controller (connect failure)",
        f"{FAILED}Communication connection failure",
        f"{FAILED}Protocol authentication error",
        "sbatch: error: If munged is up, restart with --num-threads=10",
        f"{FAILED}Slurm internal error, contact system administrator",
        "exit code 1",
    ],
)
def test_controller_that_was_not_heard_has_refused_nothing(complaint: str) -> None:
    assert refusal(complaint) is None


@pytest.mark.parametrize(
    "complaint",
    [
        f"sbatch: error: QOSMaxSubmitJobPerUserLimit {VIOLATES}",
        f"sbatch: error: AssocMaxSubmitJobLimit {VIOLATES}",
        f"{FAILED}Unable to create job record, try again",
        f"{FAILED}System submissions disabled",
    ],
)
def test_job_over_a_limit_that_others_use_up_is_taken_later(complaint: str) -> None:
    assert isinstance(refusal(complaint), QuotaError)


@pytest.mark.parametrize(
    "complaint",
    [
        f"sbatch: error: QOSMaxCpuPerJobLimit {VIOLATES}",
        f"sbatch: error: invalid partition specified: none {FAILED}Invalid partition name specified",
        f"{FAILED}Requested node configuration is not available",
        f"{FAILED}Access/permission denied",
        f"{FAILED}User's group not permitted to use this partition",
        f"{FAILED}More processors requested than permitted",
        f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)",
        f"sbatch: error: name your project by --account {FAILED}Unspecified error",
        "sbatch: unrecognized option '--nonsense'",
        "sbatch: error: Invalid --time specification",
    ],
)
def test_job_that_is_refused_never_runs(complaint: str) -> None:
    assert isinstance(refusal(complaint), FailedPreconditionError)
