"""Settings of Slurm's engine, what it submits, and what it makes of a job and of what supervisors left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolute.contracts.files.atomic_files import write_json
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.remaining_output import lost_file
from resolute.contracts.run.shim_files import LEFT, STOP
from resolute.errors import InvalidArgumentError, InvalidConfigError
from resolute_engines.environment import EngineEnvironment, SupervisorTerms
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import AllocationSpec, ContainerReport, ContainerState
from resolute_engines.settings import read_resource_settings
from resolute_engines.slurm.commands.jobs import Job, JobState
from resolute_engines.slurm.request import (
    OUTPUT_FILE,
    SlurmNodes,
    job_of,
    note_submitted,
    prepare,
)
from resolute_engines.slurm.settings import SlurmPoolOptions
from resolute_engines.slurm.states import container_reports, lacks_an_end

NODES = SlurmNodes(python="/shared/bin/python")
SPEC = AllocationSpec(
    allocation_id="t.1", placements=((0, 1), (2, 3)), address="head:1", token="token-0", pool="batch"
)
JOB = Job(
    id=7,
    name="c-t.1",
    state=JobState.RUNNING,
    slurm_state="RUNNING",
    reason="",
)
GPUS = SlurmPoolOptions(partition="gpu", slots_per_node=2, gpu_type="a100")
DOCS = Path(__file__).parents[4] / "docs" / "slurm.md"


def opened(folder: Path, text: str) -> Any:
    path = folder / "pools.yaml"
    path.write_text(text)
    environment = EngineEnvironment(
        cluster_id="0123456789",
        address="127.0.0.1:1",
        tls=None,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder / "runs",
        slots=2,
        nodes=1,
    )
    return [create_engine(engine, environment) for engine in read_resource_settings(path).engines]


def test_settings_of_the_documentation_are_accepted(tmp_path: Path) -> None:
    _, example = [text for text in DOCS.read_text().split("```yaml\n") if "type: slurm" in text]
    local, slurm = sorted(opened(tmp_path, example.split("```")[0]), key=lambda one: str(type(one)))
    assert [pool.name for pool in local.pools()] == ["default"]
    assert [(pool.name, pool.slots_per_node) for pool in slurm.pools()] == [("gpu", 8), ("spot", 8)]


@pytest.mark.parametrize(
    ("engine", "pool", "complaint"),
    [
        ("type: slurm", "", "engines.hpc.directory: missing"),
        (
            "type: slurm, directory: runs",
            "",
            "engines.hpc.directory: found .*an absolute path",
        ),
        ("type: slurm, directory: /s, user: x", "", "engines.hpc.user"),
        (
            "type: slurm, directory: /s, login: -oProxyCommand=x",
            "",
            "engines.hpc.login: .*destination of ssh",
        ),
        ("type: slurm, directory: /s, login: ssh head", "", "engines.hpc.login: .*destination of ssh"),
        ("type: slurm, directory: /s", "slot_type: tpu", r"resource_pools\[0\].slot_type"),
        ("type: slurm, directory: /s", "sbatch_args: [--nodes=2]", r"resource_pools\[0\].sbatch_args"),
    ],
)
def test_wrong_settings_are_refused_by_their_place(
    tmp_path: Path, engine: str, pool: str, complaint: str
) -> None:
    text = f"resource_pools: [{{pool_name: a, engine: hpc, {pool}}}]\nengines: {{hpc: {{{engine}}}}}\n"
    with pytest.raises(InvalidArgumentError, match=complaint):
        opened(tmp_path, text)


def options(pool: SlurmPoolOptions, **section: Any) -> tuple[str, ...]:
    spec = replace(SPEC, config={"slurm": section})
    return job_of(spec, name="n", folder=Path("/s/t.1"), pool=pool, nodes=NODES).options


def test_job_asks_for_the_slots_of_each_node() -> None:
    assert "--gres=gpu:a100:2" in options(GPUS)
    assert "--gres=gpu:h100:2" in options(GPUS, gpu_type="h100")
    assert "--cpus-per-task=2" in options(SlurmPoolOptions(slot_type="cpu"))
    assert {"--partition=gpu", "--no-requeue", "--signal=B:TERM@120"} <= set(options(GPUS))


def test_options_of_a_config_come_after_those_of_its_pool() -> None:
    pool = SlurmPoolOptions(slots_per_node=2, sbatch_args=("--qos=a",))
    assert options(pool, sbatch_args=("--qos=b",), slots_per_node=2)[:2] == ("--qos=a", "--qos=b")


def test_what_the_pool_does_not_give_is_refused_when_the_settings_changed_after_the_submission() -> None:
    with pytest.raises(InvalidConfigError, match="found 4; pool 'batch' gives 2 slots of each node"):
        options(GPUS, slots_per_node=4)
    with pytest.raises(InvalidConfigError, match=r"slurm\.gpu_type: found 'a100'"):
        options(SlurmPoolOptions(slot_type="cpu"), gpu_type="a100")


def test_niceness_grows_with_each_step_of_the_priority_where_the_pool_says_so() -> None:
    def nice(pool: SlurmPoolOptions, priority: int) -> list[str]:
        spec = replace(SPEC, priority=priority)
        job = job_of(spec, name="n", folder=Path("/s/t.1"), pool=pool, nodes=NODES)
        return [option for option in job.options if option.startswith("--nice")]

    assert nice(GPUS, 1) == nice(GPUS, 99) == []
    stepped = GPUS.model_copy(update={"nice_per_priority": 100})
    assert [*nice(stepped, 1), *nice(stepped, 42)] == ["--nice=0", "--nice=4100"]


def test_no_token_is_in_what_is_submitted(tmp_path: Path) -> None:
    prepare(SPEC, runs=tmp_path, pool=GPUS, terms=SupervisorTerms(address="head:2"))
    job = job_of(SPEC, name="n", folder=tmp_path / "t.1", pool=GPUS, nodes=NODES)
    assert SPEC.token not in repr(job)
    path = tmp_path / "t.1" / "1" / "launch.json"
    order = LaunchOrder.read(path)
    assert (order.token, order.master, order.slot_ids) == ("token-0", "head:2", (2, 3))
    assert order.python == "", "that of this machine may not be there: each node fills in its own"
    assert path.stat().st_mode & 0o077 == 0


def test_hooks_install_beside_the_runs_unless_an_image_has_its_own(tmp_path: Path) -> None:
    boxed = SlurmPoolOptions(container="apptainer", image="/shared/a.sif")
    found = []
    for name, pool in (("bare", GPUS), ("boxed", boxed)):
        spec = replace(SPEC, allocation_id=name)
        prepare(spec, runs=tmp_path, pool=pool, terms=SupervisorTerms())
        found.append(LaunchOrder.read(tmp_path / name / "0" / "launch.json").overlays)
    assert found == [str(tmp_path / ".overlays"), ""]


class Left:
    """What the containers of an allocation left."""

    def __init__(self, runs: Path) -> None:
        prepare(SPEC, runs=runs, pool=GPUS, terms=SupervisorTerms())
        self.runs = runs
        self.folder = runs / SPEC.allocation_id
        self.first, self.second = (RunContainer(runs, SPEC.allocation_id, rank) for rank in range(2))

    def began(self) -> Left:
        """Their supervisors have begun."""
        for container in (self.first, self.second):
            write_json(container.run.supervisor_file, {"pid": 1})
        return self

    def look(self, job: Job | None) -> list[ContainerReport]:
        """What is made of it."""
        return container_reports(self.runs, SPEC.allocation_id, job)


@pytest.fixture
def left(tmp_path: Path) -> Left:
    """Run directories of two containers."""
    return Left(tmp_path)


def states(reports: list[ContainerReport]) -> list[ContainerState]:
    return [report.state for report in reports]


def test_what_was_not_submitted_is_unknown_and_what_was_and_is_forgotten_is_lost(left: Left) -> None:
    assert states(left.look(None)) == [ContainerState.UNKNOWN] * 2
    note_submitted(left.folder, 7)
    assert [report.lost for report in left.look(None)] == [True, True]


def test_slurms_word_is_wanted_for_what_it_had_and_whose_end_nobody_told(left: Left) -> None:
    def lacking() -> bool:
        return lacks_an_end(left.runs, SPEC.allocation_id)

    assert not lacking()
    note_submitted(left.folder, 7)
    assert lacking()
    for container in (left.first, left.second):
        assert lacking()
        ExitRecord(exit_code=0).write(container.run.exit_file)
    assert not lacking()


def test_what_has_begun_was_submitted_whether_that_was_noted_or_not(left: Left) -> None:
    assert lacks_an_end(left.began().runs, SPEC.allocation_id)


def test_job_in_the_queue_waits_with_its_reason(left: Left) -> None:
    job = replace(JOB, state=JobState.QUEUED, slurm_state="PENDING", reason="Priority")
    (first, _) = left.look(job)
    assert (first.state, first.reason) == (ContainerState.QUEUED, "job 7 of Slurm is PENDING (Priority)")


def test_container_whose_shim_left_has_ended_while_others_run(left: Left) -> None:
    left.began()
    ExitRecord(exit_code=3).write(left.first.run.exit_file)
    assert states(left.look(JOB)) == [ContainerState.RUNNING] * 2
    (left.first.run.path / LEFT).touch()
    ended, runs = left.look(JOB)
    assert (ended.state, ended.exit, runs.state) == (
        ContainerState.ENDED,
        ExitRecord(exit_code=3),
        ContainerState.RUNNING,
    )


@pytest.mark.parametrize("word", ["NODE_FAIL", "PREEMPTED", "TIMEOUT", "CANCELLED", "FAILED"])
def test_supervisors_that_went_with_their_job_are_lost_and_their_logs_will_say_so(
    left: Left, word: str
) -> None:
    left.began()
    reports = left.look(replace(JOB, state=JobState.ENDED, slurm_state=word))
    assert [(report.lost, word in report.reason) for report in reports] == [(True, True)] * 2
    assert lost_file(left.first.run.path).exists()
    # Slurm forgets jobs.
    assert all(report.lost for report in left.look(None))


@pytest.mark.parametrize("begun", [True, False])
def test_supervisors_that_were_killed_with_a_job_that_took_too_much_memory_have_failed(
    left: Left, begun: bool
) -> None:
    if begun:
        left.began()
    ExitRecord(exit_code=3).write(left.second.run.exit_file)
    first, second = left.look(replace(JOB, state=JobState.ENDED, slurm_state="OUT_OF_MEMORY"))
    assert first.exit is not None
    assert first.exit.exit_code == 137
    assert "the memory of job 7 of Slurm" in first.exit.failure
    assert "--mem" in first.exit.failure
    assert second.exit == ExitRecord(exit_code=3), "what a supervisor has told holds"


def test_job_that_was_stopped_in_the_queue_lost_nothing(left: Left) -> None:
    (left.folder / STOP).touch()
    for report in left.look(replace(JOB, state=JobState.ENDED, slurm_state="CANCELLED")):
        assert report.exit == ExitRecord(exit_code=0, acknowledged=True)


def test_supervisor_that_cannot_start_fails_the_run_with_what_was_printed(left: Left) -> None:
    (left.folder / OUTPUT_FILE).write_text("no such file: python")
    for report in left.look(replace(JOB, state=JobState.ENDED, slurm_state="COMPLETED")):
        assert report.exit is not None
        assert report.exit.failed_before_entrypoint
        assert "no such file: python" in report.exit.failure
