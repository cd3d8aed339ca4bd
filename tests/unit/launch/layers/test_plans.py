"""What each layer starts: plans are plain data of a request and a topology."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.clusters.cluster_info import cluster_of

from resolute_launch.layers import autohorovod, deepspeed, horovod, tensorflow, torch_distributed
from resolute_launch.layers.arguments import Request
from resolute_launch.layers.tensorflow import TensorFlowRequest
from resolute_launch.layers.topology import Topology, read_topology

SCRIPT = ("python3", "train.py")
REQUEST = Request(script=SCRIPT, overrides=("--x", "1"))
ONE = Topology(python="py")
TWO = Topology(slots=(2,), python="py", port=3000)
NODES = Topology(
    addresses=("10.0.0.1", "10.0.0.2"),
    slots=(2, 1),
    node_rank=1,
    port=3000,
    python="py",
    folder=Path("/run/x"),
)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def test_torch_distributed_on_one_container() -> None:
    plan = torch_distributed.plan(REQUEST, TWO)
    assert plan.argv == words(
        "py -m torch.distributed.run --nnodes 1 --nproc_per_node 2 --node_rank 0 --max_restarts 0 "
        "--master_addr 127.0.0.1 --master_port 3000 --x 1 "
        "--module resolute_launch.wrap_rank RANK -- python3 train.py"
    )
    assert plan.environment == {"USE_TORCH_DISTRIBUTED": "True", "DET_CHIEF_IP": "127.0.0.1"}
    assert plan == torch_distributed.plan(REQUEST, TWO)


def test_torch_distributed_on_several_containers_meets_at_the_first() -> None:
    plan = torch_distributed.plan(REQUEST, NODES)
    assert "--nnodes 2 --nproc_per_node 1 --node_rank 1" in " ".join(plan.argv)
    assert "--master_addr 10.0.0.1 --master_port 3000" in " ".join(plan.argv)
    assert plan.environment["DET_CHIEF_IP"] == "10.0.0.1"


SEED_TRIAL = "py -m resolute_launch.harness model_def:MyTrial"


@pytest.mark.parametrize(
    ("layer", "line", "launcher", "overrides"),
    [
        (
            horovod,
            "--fusion-threshold-mb 1 --cycle-time-ms 2 -- --trial model_def:MyTrial",
            "py -m horovod.runner.launch -np 2",
            "--fusion-threshold-mb 1 --cycle-time-ms 2",
        ),
        (
            torch_distributed,
            "--rdzv_endpoint=10.0.0.9:29500 -- --trial model_def:MyTrial",
            "py -m torch.distributed.run",
            "--rdzv_endpoint=10.0.0.9:29500",
        ),
        (deepspeed, "--trial model_def:MyTrial", "py -m deepspeed.launcher.runner", ""),
        (horovod, "--trial model_def:MyTrial", "py -m horovod.runner.launch -np 2", ""),
    ],
)
def test_the_documented_lines_become_plans(layer: Any, line: str, launcher: str, overrides: str) -> None:
    request = layer.PARSER.parse(line.split(), python="py")
    planned = " ".join(layer.plan(request, TWO).argv)
    assert planned.startswith(launcher)
    assert planned.endswith(f" {SEED_TRIAL}")
    # Behind what the layer says itself and before the program of the workers: so they win, and reach it.
    assert planned.rindex(overrides, 0, planned.index("resolute_launch.wrap_rank")) > len(launcher)


def test_overrides_stand_behind_what_they_override() -> None:
    request = Request(script=SCRIPT, overrides=("--rdzv_endpoint=h:1", "--nproc_per_node", "7"))
    argv = torch_distributed.plan(request, TWO).argv
    assert argv.index("--rdzv_endpoint=h:1") > argv.index("--master_addr")
    assert argv.index("7") > argv.index("--nproc_per_node")


def test_horovod_on_one_container() -> None:
    plan = horovod.plan(
        Request(script=SCRIPT, overrides=words("--fusion-threshold-mb 1 --cycle-time-ms 2")), TWO
    )
    assert plan.argv == words(
        "py -m horovod.runner.launch -np 2 -H localhost:2 --start-timeout 1200 --gloo-timeout-seconds 240 "
        "--fusion-threshold-mb 64 --cycle-time-ms 1 --cache-capacity 1024 --no-hierarchical-allreduce "
        "--no-hierarchical-allgather --fusion-threshold-mb 1 --cycle-time-ms 2 "
        "py -m resolute_launch.wrap_rank HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK -- python3 train.py"
    )
    assert plan.environment == {"USE_HOROVOD": "1", "DET_CHIEF_IP": "127.0.0.1"}
    assert "SLURM_JOBID" not in plan.environ({"SLURM_JOBID": "1", "A": "b"})


def test_the_config_tunes_horovod() -> None:
    topology = dataclasses.replace(
        TWO,
        config={
            "optimizations": {"tensor_fusion_threshold": 32 * 1024 * 1024, "tensor_fusion_cycle_time": 5},
            "data": {"__det_dtrain_args": ["--num-nccl-streams", 2]},
            "debug": True,
        },
    )
    line = " ".join(horovod.plan(REQUEST, topology).argv)
    assert "--fusion-threshold-mb 32 --cycle-time-ms 5" in line
    assert "--verbose --num-nccl-streams 2 --x 1 py" in line
    tuned = dataclasses.replace(TWO, config={"optimizations": {"auto_tune_tensor_fusion": True}})
    line = " ".join(horovod.plan(REQUEST, dataclasses.replace(tuned, folder=Path("/run/x"))).argv)
    # Two trials of a machine have folders of their own.
    assert "--autotune --autotune-log-file /run/x/autotune_log.csv " in line
    assert "--fusion-threshold-mb" not in line


def test_horovod_on_several_containers_needs_no_ssh() -> None:
    plan = horovod.plan(REQUEST, NODES)
    line = " ".join(plan.argv)
    # Containers of one machine may share an address, so they go by names.
    assert line.startswith(
        "py -m resolute_launch.layers.horovod_node 1 10.0.0.1 3000 -np 3 -H node0:2,node1:1 "
    )
    assert line.endswith(
        "--x 1 py -m resolute_launch.wrap_rank " + horovod.RANK_VARIABLES + " -- python3 train.py"
    )
    assert plan.environment == {"USE_HOROVOD": "1", "DET_CHIEF_IP": "10.0.0.1"}


def test_the_environment_of_horovods_workers_stays_out_of_its_command_lines() -> None:
    assert horovod.plan(REQUEST, TWO).environment_by_file
    # The part of one of several containers starts its ranks itself.
    assert not horovod.plan(REQUEST, NODES).environment_by_file


def test_deepspeed_on_one_container() -> None:
    plan = deepspeed.plan(REQUEST, TWO)
    head = words("py -m deepspeed.launcher.runner --hostfile")
    tail = words(
        "--num_gpus 2 --master_addr 127.0.0.1 --master_port 3000 --no_python --no_local_rank --x 1 "
        "py -m resolute_launch.wrap_rank RANK -- python3 train.py"
    )
    assert plan.argv == (*head, "", *tail)
    assert plan.environment == {"USE_DEEPSPEED": "1", "DET_CHIEF_IP": "127.0.0.1"}
    assert plan.defaults == {"OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    assert plan.files == {}


@pytest.mark.parametrize("choice", ["-i localhost:0", "--include=localhost:0", "--exclude localhost:1"])
def test_deepspeed_takes_a_choice_of_devices_in_place_of_their_number(choice: str) -> None:
    plan = deepspeed.plan(Request(script=SCRIPT, overrides=words(choice)), TWO)
    assert "--num_gpus" not in plan.argv
    assert set(words(choice)) <= set(plan.argv)


@pytest.mark.parametrize(
    ("overrides", "where"),
    [
        ("--x 1", "127.0.0.1_3000"),
        ("--master_port 41", "127.0.0.1_41"),
        ("--master_port=41 --master_addr=10.0.0.9 --master_port 42", "127.0.0.1_42"),
    ],
)
def test_memory_that_deepspeeds_ranks_leave_behind_is_known_by_address_and_port(
    overrides: str, where: str
) -> None:
    plan = deepspeed.plan(Request(script=SCRIPT, overrides=words(overrides)), TWO)
    name = f"deepspeed_allreduce_buffer_{os.getuid()}_{where}"
    assert plan.external_resources == (Path(f"/dev/shm/{name}_0"), Path(f"/dev/shm/{name}_1"))
    # Ranks of several machines share no memory.
    assert deepspeed.plan(REQUEST, NODES).external_resources == ()


def test_deepspeed_on_several_containers_needs_no_ssh() -> None:
    plan = deepspeed.plan(REQUEST, NODES)
    line = " ".join(plan.argv)
    assert "--hostfile /run/x/deepspeed-hostfile --no_ssh --node_rank 1 --master_addr 10.0.0.1" in line
    assert plan.files == {Path("/run/x/deepspeed-hostfile"): "10.0.0.1 slots=2\n10.0.0.2 slots=1\n"}
    assert plan.environment["DET_DEEPSPEED_HOSTFILE_PATH"] == "/run/x/deepspeed-hostfile"


def test_containers_of_one_machine_have_names_of_their_own() -> None:
    topology = dataclasses.replace(NODES, addresses=("127.0.0.1", "127.0.0.1"))
    assert list(deepspeed.plan(REQUEST, topology).files.values()) == ["node0 slots=2\nnode1 slots=1\n"]


def test_workers_of_deepspeed_keep_the_gpus_of_their_container() -> None:
    topology = dataclasses.replace(TWO, gpu=True, visible_devices="GPU-a,GPU-b")
    plan = deepspeed.plan(REQUEST, topology)
    assert "env CUDA_VISIBLE_DEVICES=GPU-a,GPU-b py -m resolute_launch.wrap_rank" in " ".join(plan.argv)
    assert "DS_ACCELERATOR" not in plan.defaults


TF_REQUEST = TensorFlowRequest(script=SCRIPT)


def test_a_script_of_tensorflow_runs_as_it_is_on_one_container() -> None:
    for topology in (ONE, TWO):
        plan = tensorflow.plan(TensorFlowRequest(script=SCRIPT, port=4000), topology)
        assert (plan.argv, plan.replaces_process) == (SCRIPT, True)
        assert plan.environment == {"DET_CHIEF_IP": "127.0.0.1"}


@pytest.mark.parametrize(
    ("topology", "request_", "workers"),
    [
        ({"container_ports": (51, 52)}, TF_REQUEST, ["10.0.0.1:51", "10.0.0.2:52"]),
        (
            {"container_ports": (51, 52)},
            TensorFlowRequest(script=SCRIPT, port=9),
            ["10.0.0.1:9", "10.0.0.2:9"],
        ),
        ({}, TF_REQUEST, ["10.0.0.1:3000", "10.0.0.2:3000"]),
        ({"addresses": ("fd00::1", "h"), "container_ports": (51, 52)}, TF_REQUEST, ["[fd00::1]:51", "h:52"]),
    ],
)
def test_a_script_of_tensorflow_on_several_containers_is_told_of_all_workers(
    topology: dict[str, Any], request_: TensorFlowRequest, workers: list[str]
) -> None:
    # One worker a container, however many slots it has: they are the worker's devices.
    plan = tensorflow.plan(request_, dataclasses.replace(NODES, interface="eth7", **topology))
    assert plan.argv == words("py -m resolute_launch.wrap_rank 1 -- python3 train.py")
    assert json.loads(plan.environment["TF_CONFIG"]) == {
        "cluster": {"worker": workers},
        "task": {"type": "worker", "index": 1},
    }
    assert plan.environment["DET_CHIEF_IP"] == workers[0].rpartition(":")[0].strip("[]")
    assert plan.defaults["NCCL_SOCKET_IFNAME"] == "eth7"


def test_a_port_of_each_container_is_read() -> None:
    topology = read_topology(cluster_of("127.0.0.1", "127.0.0.2"), {"RESOLUTE_CONTAINER_PORTS": "51,52"})
    assert topology.container_ports == (51, 52)
    assert read_topology(cluster_of("127.0.0.1"), {}).container_ports == ()


def test_one_slot_needs_no_launcher() -> None:
    for has_horovod in (True, False):
        plan = autohorovod.plan(REQUEST, ONE, has_horovod=has_horovod)
        assert (plan.argv, plan.replaces_process) == (SCRIPT, True)
    assert horovod.plan(dataclasses.replace(REQUEST, auto=True), ONE).replaces_process
    assert not horovod.plan(REQUEST, ONE).replaces_process


def test_several_slots_go_by_horovod_or_without_it_by_torch_distributed() -> None:
    assert autohorovod.plan(REQUEST, TWO, has_horovod=True) == horovod.plan(REQUEST, TWO)
    without = autohorovod.plan(REQUEST, TWO, has_horovod=False)
    # Words for horovodrun mean nothing to torchrun.
    assert without == torch_distributed.plan(Request(script=SCRIPT), TWO)


def test_threads_are_shared_unless_somebody_chose() -> None:
    plan = torch_distributed.plan(REQUEST, TWO)
    assert plan.environ({})["OMP_NUM_THREADS"] == "1"
    assert plan.environ({"OMP_NUM_THREADS": "4"})["OMP_NUM_THREADS"] == "4"
    assert "OMP_NUM_THREADS" not in torch_distributed.plan(REQUEST, ONE).environ({})


def test_ranks_of_several_containers_are_told_the_way_to_each_other_unless_somebody_chose() -> None:
    topology = dataclasses.replace(NODES, interface="eth7")
    for layer in (torch_distributed, deepspeed):
        plan = layer.plan(REQUEST, topology)
        assert plan.environ({})["GLOO_SOCKET_IFNAME"] == "eth7"
        assert plan.environ({"NCCL_SOCKET_IFNAME": "ib0"})["NCCL_SOCKET_IFNAME"] == "ib0"
        assert "GLOO_SOCKET_IFNAME" not in layer.plan(REQUEST, TWO).environ({})


def test_the_way_to_the_first_container_is_found_or_what_the_cluster_names() -> None:
    nodes = cluster_of("127.0.0.1", "127.0.0.2")
    assert read_topology(nodes, {}).interface == "lo"
    nodes.trial._inter_node_network_interface = "ib0"
    assert read_topology(nodes, {}).interface == "ib0"
    assert read_topology(cluster_of("127.0.0.1"), {}).interface == ""


@pytest.mark.parametrize(
    ("overrides", "restarts_ranks"),
    [
        ("", False),
        ("--max_restarts 3", True),
        ("--max-restarts=3", True),
        ("--max_restarts 0", False),
        ("--max-restarts=2 --max_restarts 0", False),
        ("--host-discovery-script ./hosts.sh", True),
        ("--elastic_training", True),
    ],
)
def test_a_launcher_that_may_restart_ranks_is_left_to_it(overrides: str, restarts_ranks: bool) -> None:
    request = Request(script=SCRIPT, overrides=tuple(overrides.split()))
    assert torch_distributed.plan(request, TWO).restarts_ranks == restarts_ranks


@pytest.mark.parametrize(
    ("grace", "torch", "deep"),
    [("", 10, 5), ("15", 10, 5), ("3", 1.5, 0.75), ("0", 0, 0), ("120", 115, 110), ("40.5", 35.5, 30.5)],
)
def test_a_layer_kills_a_little_before_the_supervisor_does(grace: str, torch: float, deep: float) -> None:
    topology = read_topology(cluster_of("127.0.0.1"), {"RESOLUTE_TERMINATION_GRACE": grace})
    layers = (torch_distributed, horovod, deepspeed)
    assert [layer.plan(REQUEST, topology).grace_seconds for layer in layers] == [torch, torch, deep]


@pytest.mark.parametrize(("grace", "seconds"), [(15, "30"), (120, "115"), (40.5, "36")])
def test_torchrun_kills_no_earlier_than_its_layer(grace: float, seconds: str) -> None:
    plan = torch_distributed.plan(REQUEST, dataclasses.replace(TWO, grace_seconds=grace))
    assert plan.environ({})["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == seconds


def test_outside_of_a_cluster_the_world_is_this_machine() -> None:
    topology = read_topology(None, {})
    assert (topology.addresses, topology.slots, topology.workers) == (("127.0.0.1",), (1,), 1)
