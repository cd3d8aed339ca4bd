"""What Apptainer, Enroot and Pyxis are called with: their command lines alone, since none of them runs here.

A job's script is run by a shell in which the programs that it calls write down their arguments.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import AllocationSpec
from resolute_engines.settings import read_resource_settings
from resolute_engines.slurm.request import SlurmNodes, job_of
from resolute_engines.slurm.settings import SlurmPoolOptions

FOLDER = "/shared/runs/t.1"
RUNTIME = "/shared/runtime"
SHIM = ["/bin/sh", f"{RUNTIME}/start.sh", "resolute_launch.node", FOLDER]
NODES = SlurmNodes(python="/shared/bin/python", runtime=RUNTIME)
ONE = AllocationSpec(
    allocation_id="t.1", placements=((0, 1),), address="head:1", token="token-0", pool="batch"
)
TWO = replace(ONE, placements=((0, 1), (2, 3)))
STORED = {
    "environment": {"image": {"cpu": "python:3.11", "cuda": "nvcr.io/nvidia/pytorch:24.01-py3"}},
    "bind_mounts": [{"host_path": "/data/sets", "container_path": "/sets", "read_only": True}],
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/shared/checkpoints"},
}
# Each into a file of its own, there when it is whole: the listener is called beside the rest, and ended.
WRITES = """#!/bin/sh
for word in "${0##*/}" "$@"; do printf "%s\\0" "$word"; done > "$0.$$" && mv "$0.$$" "$CALLS/$$"
"""


def calls(folder: Path, spec: AllocationSpec, **pool: Any) -> list[list[str]]:
    """What a job's script calls, without the listener of jobs of one node."""
    settings = SlurmPoolOptions(slots_per_node=2, **pool)
    job = job_of(spec, name="n", folder=Path(FOLDER), pool=settings, nodes=NODES)
    assert spec.token not in repr(job)
    programs, written = folder / "programs", folder / "calls"
    programs.mkdir()
    written.mkdir()
    for name in ("srun", "apptainer", "enroot"):
        (programs / name).write_text(WRITES)
        (programs / name).chmod(0o700)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(written)}
    subprocess.run(["sh", "-c", job.script], env=environment, check=True, timeout=60)
    lines = [call.read_text().rstrip("\0").split("\0") for call in written.iterdir()]
    return [line for line in lines if "listen" not in line]


def of_step(call: Sequence[str]) -> list[str]:
    """What follows the options that every step has."""
    assert call[:3] == ["srun", "--kill-on-bad-exit=0", "--input=none"]
    return list(call[3:])


def test_apptainer_has_the_gpus_the_mounts_and_the_rank(tmp_path: Path) -> None:
    spec = replace(ONE, config=STORED)
    (call,) = calls(tmp_path, spec, container="apptainer", container_args=("--writable-tmpfs",))
    assert call == [
        *("apptainer", "exec", "--nv", f"--home={FOLDER}"),
        f"--bind={RUNTIME}:{RUNTIME}:ro",
        "--bind=/data/sets:/sets:ro",
        "--bind=/shared/checkpoints:/shared/checkpoints",
        "--writable-tmpfs",
        "docker://nvcr.io/nvidia/pytorch:24.01-py3",
        *SHIM,
        "0",
    ]


def test_apptainer_of_several_nodes_is_started_by_each_node(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, TWO, container="apptainer", slot_type="cpu", image="/shared/a b.sif")
    started = ["apptainer", "exec", f"--home={FOLDER}", f"--bind={RUNTIME}:{RUNTIME}:ro", "/shared/a b.sif"]
    # The node's shell adds its rank.
    assert of_step(call) == ["sh", "-c", 'exec "$@" "$SLURM_PROCID"', "shim", *started, *SHIM]


def test_enroot_has_the_variables_of_the_node_and_the_mounts(tmp_path: Path) -> None:
    config = {**STORED, "environment": {"image": {"cuda": "/shared/images/torch.sqsh"}}}
    (call,) = calls(tmp_path, replace(ONE, config=config), container="enroot")
    assert call == [
        *("enroot", "start", "--env=SLURM_JOB_ID", "--env=SLURMD_NODENAME", f"--env=HOME={FOLDER}"),
        *("--env=CUDA_VISIBLE_DEVICES", "--env=NVIDIA_VISIBLE_DEVICES=all"),
        "--env=NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        f"--mount={FOLDER}:{FOLDER}:none:x-create=dir,rbind",
        f"--mount={RUNTIME}:{RUNTIME}:none:x-create=dir,rbind,ro",
        "--mount=/data/sets:/sets:none:x-create=dir,rbind,ro",
        "--mount=/shared/checkpoints:/shared/checkpoints:none:x-create=dir,rbind",
        "/shared/images/torch.sqsh",
        *SHIM,
        "0",
    ]


@pytest.mark.parametrize("spec", [ONE, TWO])
def test_pyxis_puts_the_step_into_the_image_on_one_node_too(tmp_path: Path, spec: AllocationSpec) -> None:
    (call,) = calls(tmp_path, replace(spec, config=STORED), container="pyxis")
    mounts = f"{FOLDER}:{FOLDER},{RUNTIME}:{RUNTIME}:ro,/data/sets:/sets:ro"
    mounts += ",/shared/checkpoints:/shared/checkpoints"
    assert of_step(call) == [
        "--container-image=nvcr.io#nvidia/pytorch:24.01-py3",
        f"--container-mounts={mounts}",
        f"--container-workdir={FOLDER}",
        "--no-container-mount-home",
        "--no-container-entrypoint",
        *("sh", "-c", 'exec "$@" "$SLURM_PROCID"', "shim", "env", f"HOME={FOLDER}", *SHIM),
    ]


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("python:3.11", "python:3.11"),
        ("docker.io/library/python:3.11", "library/python:3.11"),
        ("docker://localhost:5000/torch", "localhost:5000#torch"),
        ("nvcr.io#nvidia/pytorch", "nvcr.io#nvidia/pytorch"),
        ("team/torch:1", "team/torch:1"),
        ("/shared/torch.sqsh", "/shared/torch.sqsh"),
    ],
)
def test_pyxis_has_its_own_way_to_write_a_registry(tmp_path: Path, image: str, found: str) -> None:
    (call,) = calls(tmp_path, ONE, container="pyxis", image=image)
    assert f"--container-image={found}" in call


def test_a_pool_without_containers_runs_bare_processes_whatever_the_image(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, replace(TWO, config=STORED))
    assert of_step(call)[4:] == ["/shared/bin/python", "-m", "resolute_launch.node", FOLDER]


@pytest.mark.parametrize(
    ("pool", "config", "complaint"),
    [
        ({"container": "apptainer"}, {}, "environment.image is not given and the pool has no image"),
        ({"container": "enroot", "image": "python:3.11"}, {}, "Enroot starts files: make one by"),
        (
            {"container": "pyxis", "image": "a"},
            {"bind_mounts": [{"host_path": "/data", "container_path": "sets"}]},
            r"bind_mounts\[0\].container_path: found 'sets'",
        ),
        (
            {"container": "apptainer", "image": "a"},
            {"checkpoint_storage": {"type": "shared_fs", "host_path": "/a:/etc"}},
            "checkpoint_storage.host_path: found '/a:/etc'",
        ),
    ],
)
def test_what_no_command_line_can_say_is_refused(
    pool: Mapping[str, Any], config: Mapping[str, Any], complaint: str
) -> None:
    spec = replace(ONE, config=config)
    with pytest.raises((InvalidArgumentError, FailedPreconditionError), match=complaint):
        job_of(spec, name="n", folder=Path(FOLDER), pool=SlurmPoolOptions(**pool), nodes=NODES)


def opened(folder: Path, *, engine: str = "", pool: str = "") -> Any:
    path = folder / "pools.yaml"
    path.write_text(
        f"resource_pools: [{{pool_name: a, engine: hpc, {pool}}}]\n"
        f"engines: {{hpc: {{type: slurm, directory: /s, {engine}}}}}\n"
    )
    environment = EngineEnvironment(
        cluster_id="0123456789",
        address="127.0.0.1:1",
        tls=None,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder,
        slots=2,
        nodes=1,
    )
    (settings,) = read_resource_settings(path).engines
    return create_engine(settings, environment)


def test_images_and_mounts_have_an_effect_in_pools_of_containers_alone(tmp_path: Path) -> None:
    wanted = {"environment.image", "bind_mounts"}
    (pool,) = opened(tmp_path, engine="runtime: /s/runtime", pool="container: pyxis").pools()
    assert wanted <= pool.supported_fields
    (pool,) = opened(tmp_path).pools()
    assert not wanted & pool.supported_fields


@pytest.mark.parametrize(
    ("pool", "complaint"),
    [
        ("container: podman", r"resource_pools\[0\].container"),
        ("container: enroot", r"engines.hpc.runtime: missing; resource_pools\[0\] has containers"),
        ("image: python", r"resource_pools\[0\]: image and container_args are for containers"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_place(
    tmp_path: Path, pool: str, complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        opened(tmp_path, pool=pool)
