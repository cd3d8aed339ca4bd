"""The command lines of horovodrun that scripts can ask for."""

from __future__ import annotations

from determined.horovod import create_hostlist_arg, create_performance_args, create_run_command

FIXED = ["--cache-capacity", "1024", "--no-hierarchical-allreduce", "--no-hierarchical-allgather"]


def test_the_first_host_is_this_machine() -> None:
    assert create_hostlist_arg([2, 4], ["10.0.0.1", "10.0.0.2"]) == "localhost:2,10.0.0.2:4"


def test_tuning_is_as_configured() -> None:
    given = {"tensor_fusion_threshold": 32, "tensor_fusion_cycle_time": 5}
    assert create_performance_args(given) == ["--fusion-threshold-mb", "32", "--cycle-time-ms", "5", *FIXED]
    tuned = create_performance_args({"auto_tune_tensor_fusion": True})
    assert tuned == ["--autotune", "--autotune-log-file", "/tmp/autotune_log.csv", *FIXED]


def test_several_machines_use_the_interface_between_them() -> None:
    begin = "horovodrun -np 4 -p 12350 -H localhost:2,b:2 --start-timeout 1200 --gloo-timeout-seconds 240"
    tuning = create_performance_args({})
    command = create_run_command([2, 2], ["a", "b"], "eth0", {}, True, ["--x"])
    assert command == [*begin.split(), "--network-interface", "eth0", *tuning, "--verbose", "--x", "--"]
    assert "--network-interface" not in create_run_command([2], ["a"], "eth0", {}, False, [])
