"""A script of two processes under torchrun is one trial that no cluster runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.ports import free_port
from support.waiting import wait_until

SCRIPT = """
import sys
from resolute import core, core_v2

with core.DistributedContext.from_torch_distributed() as distributed:
    core_v2.init(
        distributed=distributed,
        config=core_v2.Config(
            name="ranks", external_experiment_id="ranks", external_trial_id="first"
        ),
    )
    rank, first = distributed.rank, 0
    latest = core_v2.info.latest_checkpoint
    if latest is not None:
        with core_v2.checkpoint.restore_path(latest) as path:
            first = int((path / f"rank{rank}").read_text())
            assert (path / f"rank{1 - rank}").exists()
    print(f"rank {rank} begins at {first}", flush=True)
    for step in range(first, first + 50):
        assert not core_v2.preempt.should_preempt()
        if rank == 0:
            core_v2.train.report_training_metrics(step, {"loss": 1.0 / (step + 1)})
    if rank == 1 and sys.argv[1:] == ["fail"]:
        raise ValueError("rank 1 is out of memory")
    assert distributed.allgather(rank) == [0, 1]
    with core_v2.checkpoint.store_path({"steps_completed": step + 1}, shard=True) as (path, _):
        (path / f"rank{rank}").write_text(str(step + 1))
    core_v2.close()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path / "home", slots=1, XDG_DATA_HOME=str(tmp_path / "data")) as running:
        yield running


def torchrun(variables: dict[str, str], script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in two processes to its end."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    place = ["--master_addr=127.0.0.1", f"--master_port={free_port()}"]
    return subprocess.run(
        [*command, *place, str(script), *arguments],
        env={
            **variables,
            "OMP_NUM_THREADS": "1",
            "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def lines_of(cluster: EmbeddedCluster, rank: int) -> list[str]:
    said = cluster.run("resolute", "trial", "logs", "1", "--json", "--rank-id", str(rank)).stdout
    return [json.loads(line)["message"] for line in said.splitlines()]


@pytest.mark.integration
@pytest.mark.sampled(2, group="scripts without their cluster")
def test_the_ranks_of_a_script_are_one_trial_that_goes_on_where_it_stopped(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    for life in range(2):
        done = torchrun(cluster.variables(), script)
        assert done.returncode == 0, done.stderr
        (described,) = cluster.json("trial", "describe", "1", "--metrics-summary")
        assert described["trial"]["state"] == "COMPLETED"
        assert [run["outcome"] for run in described["trial"]["runs"]] == ["COMPLETED"] * (life + 1)
        (loss,) = [each for each in described["metrics_summary"] if each["name"] == "loss"]
        assert loss["count"] == 50 * (life + 1)
        for rank in range(2):
            assert lines_of(cluster, rank)[-1] == f"rank {rank} begins at {50 * life}"
    assert len(cluster.json("experiment", "list", "--all")) == 1
    listed = cluster.json("experiment", "list-checkpoints", "1")
    files = [{file["path"] for file in each["files"]} for each in listed]
    assert files == [{"rank0", "rank1", "metadata.json"}] * 2

    done = torchrun(cluster.variables(), script, "fail")
    assert done.returncode != 0
    found: list[dict[str, Any]] = []

    def failed() -> bool:
        found[:] = [cluster.json("trial", "describe", "1")[0]["trial"]]
        return bool(found[0]["state"] == "ERROR")

    wait_until(failed, what="the end of the trial")
    assert [run["outcome"] for run in found[0]["runs"]][:2] == ["COMPLETED", "COMPLETED"]
    assert any("rank 1 is out of memory" in line for line in lines_of(cluster, 1))


@pytest.mark.sampled(2, group="scripts without their cluster")
def test_without_a_cluster_every_rank_records_and_the_chief_says_so_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    nowhere = EmbeddedCluster(tmp_path / "nowhere", environment={"XDG_DATA_HOME": str(tmp_path)})
    done = torchrun({**os.environ, **nowhere.variables()}, script)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no cluster is in reach") == 1
    (run,) = (tmp_path / "resolute" / "unmanaged").iterdir()
    spools = {path.name.partition("-")[0] for path in (run / "spool").iterdir()}
    assert {"rank0"} <= spools
    (checkpoint,) = [path for path in (run / "checkpoints").iterdir() if not path.name.startswith(".")]
    assert {path.name for path in checkpoint.iterdir()} == {"rank0", "rank1", "metadata.json"}
