"""Reading what Slurm's commands print."""

from __future__ import annotations

import pytest

from resolute.errors import DataLossError
from resolute_experiments.resources.slurm.jobs import JobState, parse_jobs, parse_nodes


def test_jobs_come_by_number_with_the_exit_of_their_script() -> None:
    killed, waiting, failed = parse_jobs(
        "10|c|FAILED|NonZeroExitCode|768|1|node[0-1]|\n"
        "9|b|PENDING|Resources|0|0||\n"
        "\n"
        "2|a|FAILED|JobLaunchFailure|9|0|node0|\n"
    )
    assert (killed.name, killed.exit_code, killed.nodes) == ("a", -9, "node0")
    assert (waiting.state, waiting.reason, waiting.nodes) == (JobState.QUEUED, "Resources", "")
    assert (failed.state, failed.exit_code, failed.restarts) == (JobState.ENDED, 3, 1)


def test_job_that_is_being_ended_still_runs() -> None:
    (job,) = parse_jobs("1|a|COMPLETING|None|0|0|node0|")
    assert (job.state, job.slurm_state, job.reason) == (JobState.RUNNING, "COMPLETING", "")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1|a|RUNNING|None|0|0|", "not 7 fields"),
        ("1|a|RUNNING|None|0|0|node0|more", "not 7 fields"),
        ("one|a|RUNNING|None|0|0|node0|", "where a number belongs"),
        ("1|a|DREAMING|None|0|0|node0|", "not known of Slurm: DREAMING"),
    ],
)
def test_line_of_another_form_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(DataLossError, match=complaint):
        parse_jobs(line)


def test_node_of_two_partitions_counts_once() -> None:
    one, two = parse_nodes("n2|idle|4|(null)|\nn1|mixed|64|gpu:a100:8|\nn2|idle|4|(null)|\n")
    assert (one.name, one.cpus, one.gres, one.usable) == ("n1", 64, "gpu:a100:8", True)
    assert (two.name, two.gres) == ("n2", "")


@pytest.mark.parametrize("state", ["down", "down*", "idle*", "drained", "draining", "maint", "powered_down"])
def test_node_that_takes_no_jobs_is_not_usable(state: str) -> None:
    (node,) = parse_nodes(f"n1|{state}|4|(null)|")
    assert not node.usable
