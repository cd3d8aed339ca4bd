"""Which options of ``sbatch`` a config may set: jobs run as the user of the services."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidConfigError
from resolute_engines.protocol import AllocationSpec
from resolute_engines.slurm.request import SlurmNodes, job_of
from resolute_engines.slurm.sbatch_options import SbatchAccess
from resolute_engines.slurm.settings import SlurmPoolOptions


def problems(*arguments: str, listed: tuple[str, ...] = ()) -> dict[str, str]:
    access = SbatchAccess(pool="batch", listed=listed)
    return {
        fault.field: fault.description for fault in access.faults({"slurm": {"sbatch_args": [*arguments]}})
    }


@pytest.mark.parametrize(
    "argument",
    [
        *("--time=60", "-t60", "-t 60", "--mem=8G", "--mem-per-cpu=1G", "--account=a", "-Aa", "--qos=high"),
        *("--exclusive", "--exclusive=user", "--nice", "--nice=5", "--get-user-env", "-Qv", "-Qt60"),
        *("--exclude=n1,n2", "-xn[1-3]", "--nodelist=n1", "--constraint=a&b", "--comment=of --uid=0"),
    ],
)
def test_options_about_resources_place_and_time_are_taken(argument: str) -> None:
    assert problems(argument) == {}


@pytest.mark.parametrize(
    "argument",
    [
        *("run.sh", "/home/ada/run.sh", " --time=60", "60", "", "-", "--", "---time=1", "\u2013time=1"),
        *("--uid=0", "--uid", "--uid 0", "--gid=0", "--clusters=other", "-Mother", "-M other", "-QMother"),
        *("--prolog=/x", "--task-prolog=/x", "--wrap=id", "--bcast=/x", "--export-file=/x", "--reboot"),
        *(
            "--container=/x",
            "--burst-buffer=x",
            "--bb=x",
            "--bbf=/x",
            "--nodefile=/x",
            "-F/x",
            "--priority=9",
        ),
        *("--UID=0", "--Time=1", "--ti=60", "--exclu", "--clu=x", "--time 60", "-1", "-h", "--propagate=ALL"),
        *("--exclude=/etc/passwd", "--nodelist=./names", "-w/etc/hosts", "-x ../names"),
        # A value that is left out would be the next argument: one of those that the engine sets.
        *("--comment", "--time", "-t", "--time=", "-Qt"),
        *("--contiguous=x", "--quiet=--uid"),
    ],
)
def test_everything_else_is_refused_by_its_place(argument: str) -> None:
    assert list(problems("--time=1", argument)) == ["slurm.sbatch_args[1]"]


def test_words_after_an_option_are_refused_however_they_look() -> None:
    assert list(problems("--time", "60")) == ["slurm.sbatch_args[0]", "slurm.sbatch_args[1]"]


def test_operator_lists_more_options_by_name() -> None:
    listed = ("--mail-user", "-M")
    assert problems("--mail-user=ada@example.org", "-Mother", listed=listed) == {}
    (said,) = problems("--mail-type=END", listed=listed).values()
    assert said == (
        "found '--mail-type=END'; pool 'batch' lets configs set options about resources, place and time: "
        "leave it out, or let the operator add --mail-type to allowed_sbatch_args of the pool"
    )
    assert problems("--uid=0", "run.sh", listed=("*",)) == {}


def test_options_are_checked_again_at_the_launch_since_settings_change() -> None:
    def launch(pool: SlurmPoolOptions) -> tuple[str, ...]:
        spec = AllocationSpec(
            allocation_id="t.1",
            placements=((0,),),
            address="head:1",
            token="t",
            pool="batch",
            config={"slurm": {"sbatch_args": ["--reboot"]}},
        )
        return job_of(
            spec, name="n", folder=Path("/s/t.1"), pool=pool, nodes=SlurmNodes(python="python3")
        ).options

    with pytest.raises(InvalidConfigError, match=r"slurm\.sbatch_args\[0\]: found '--reboot'"):
        launch(SlurmPoolOptions())
    assert "--reboot" in launch(SlurmPoolOptions(allowed_sbatch_args=("--reboot",)))
