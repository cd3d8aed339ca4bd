"""Which process of the job this one is."""

from typing import Any

import pytest

from resolute.core.distributed import LaunchVariablesError
from resolute.core.distributed.topology import (
    Topology,
    from_deepspeed,
    from_horovod,
    from_tf_config,
    from_torch_distributed,
)

SIX = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
TWO_BY_TWO = Topology(rank=3, size=4, local_rank=1, local_size=2, cross_rank=1, cross_size=2)
TORCH = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
}
DEEPSPEED = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_SIZE": "2",
    "CROSS_RANK": "1",
    "CROSS_SIZE": "2",
}


class Horovod:
    """Stands for an initialised Horovod module, which needs its own launcher to exist."""

    def rank(self) -> int:
        return 3

    def size(self) -> int:
        return 4

    def local_rank(self) -> int:
        return 1

    def local_size(self) -> int:
        return 2

    def cross_rank(self) -> int:
        return 1

    def cross_size(self) -> int:
        return 2


def test_no_numbers_mean_a_job_of_one_process() -> None:
    assert Topology.of(**dict.fromkeys(SIX)) == Topology(0, 1, 0, 1, 0, 1)


@pytest.mark.parametrize("missing", SIX)
def test_five_of_the_six_numbers_are_refused(missing: str) -> None:
    numbers: dict[str, int | None] = dict(zip(SIX, (3, 4, 1, 2, 1, 2), strict=True))
    numbers[missing] = None

    with pytest.raises(ValueError, match=f"must all be provided if any are provided; missing: {missing}"):
        Topology.of(**numbers)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((2, 2, 0, 1, 0, 2), "rank must be at least 0 and less than size, but rank is 2 and size is 2"),
        ((-1, 2, 0, 1, 0, 2), "rank must be at least 0"),
        ((0, 2, 1, 1, 0, 2), "local_rank must be at least 0 and less than local_size"),
        ((0, 2, 0, 1, 2, 2), "cross_rank must be at least 0 and less than cross_size"),
        ((0, 2, 0, 3, 0, 1), r"local_size \(3\) is larger than size \(2\)"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(numbers: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Topology(*numbers)


def test_several_machines_need_the_address_of_the_chief() -> None:
    with pytest.raises(AssertionError, match=r"local_size != size \(2 != 4\)"):
        TWO_BY_TWO.chief_host(None)


def test_several_machines_use_the_address_of_the_chief() -> None:
    assert TWO_BY_TWO.chief_host("10.0.0.7") == "10.0.0.7"


def test_one_machine_always_uses_loopback() -> None:
    assert Topology(0, 2, 0, 2, 0, 1).chief_host("10.0.0.7") == "127.0.0.1"


def test_horovod_is_asked_for_the_ranks() -> None:
    assert from_horovod(Horovod()) == TWO_BY_TWO


def test_torchruns_variables_tell_the_ranks() -> None:
    assert from_torch_distributed(TORCH) == TWO_BY_TWO


def test_deepspeeds_variables_tell_the_ranks() -> None:
    assert from_deepspeed(DEEPSPEED) == TWO_BY_TWO


def test_a_run_without_a_launcher_is_told_which_one_to_use() -> None:
    with pytest.raises(LaunchVariablesError, match=r"^GROUP_RANK, GROUP_WORLD_SIZE not set: .*torchrun"):
        from_torch_distributed({name: TORCH[name] for name in list(TORCH)[:4]})


def test_scripts_can_tell_a_plain_run_by_a_key_error() -> None:
    with pytest.raises(KeyError):
        from_deepspeed({})


def test_variables_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="must be whole numbers"):
        from_torch_distributed({**TORCH, "RANK": "first"})


def test_tensorflow_has_one_worker_a_machine() -> None:
    config = {"cluster": {"worker": ["a:1", "b:1", "c:1"]}, "task": {"type": "worker", "index": 2}}

    assert from_tf_config(config) == Topology(2, 3, 0, 1, 2, 3)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"cluster": {"worker": ["a:1"]}},
        {"cluster": {"worker": 3}, "task": {"index": 0}},
        {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"index": 5}},
    ],
)
def test_a_tensorflow_config_without_our_place_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"TF_CONFIG|rank must"):
        from_tf_config(config)


def test_a_task_of_tensorflow_that_is_no_worker_is_refused() -> None:
    config = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 0}}
    with pytest.raises(RuntimeError, match="type 'ps'; only workers"):
        from_tf_config(config)
