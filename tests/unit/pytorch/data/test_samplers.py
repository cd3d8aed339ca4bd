from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from torch.utils.data import BatchSampler, SequentialSampler

from resolute.pytorch import adapt_batch_sampler
from resolute.pytorch.data import samplers


def batches(records: int = 10, size: int = 2) -> BatchSampler:
    return BatchSampler(SequentialSampler(range(records)), size, drop_last=False)


@pytest.mark.parametrize("rank", range(3))
def test_ranks_get_items_turn_and_turn_about(rank: int) -> None:
    shard = samplers.DistributedSampler(SequentialSampler(range(10)), num_workers=3, rank=rank)
    assert list(shard) == list(range(rank, 10, 3))
    assert len(shard) == len(list(shard))
    batch_shard = samplers.DistributedBatchSampler(batches(), 3, rank)
    assert list(batch_shard) == list(batches())[rank::3]
    assert len(batch_shard) == len(list(batch_shard))


@pytest.mark.parametrize(("size", "rank"), [(0, 0), (2, 2), (2, -1)])
def test_a_rank_that_cannot_be_is_refused(size: int, rank: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        samplers.DistributedBatchSampler(batches(), size, rank)


def test_a_repeated_sampler_does_not_end_and_keeps_its_length() -> None:
    repeated = samplers.RepeatSampler(SequentialSampler(range(3)))
    assert list(islice(repeated, 7)) == [0, 1, 2, 0, 1, 2, 0]
    assert len(repeated) == 3
    assert len(samplers.RepeatBatchSampler(batches())) == 5
    assert list(samplers.RepeatSampler(SequentialSampler([]))) == []


def test_a_skip_leaves_out_the_first_items_once() -> None:
    skipped = samplers.SkipBatchSampler(samplers.RepeatBatchSampler(batches(4)), 1)
    assert list(islice(skipped, 3)) == [[2, 3], [0, 1], [2, 3]]
    assert len(skipped) == 2
    assert skipped.skip == 1
    assert list(samplers.SkipSampler(SequentialSampler(range(3)), 5)) == []


@pytest.mark.parametrize(
    "shuffle", [samplers.ReproducibleShuffleSampler, samplers.ReproducibleShuffleBatchSampler]
)
def test_shuffles_differ_by_pass_and_follow_from_the_seed(shuffle: Any) -> None:
    one, other = shuffle(batches(20), 3), shuffle(batches(20), 3)
    first, second = list(one), list(one)
    assert first != second
    assert sorted(first) == sorted(second) == list(batches(20))
    assert [list(other), list(other)] == [first, second]
    assert list(shuffle(batches(20), 4)) != first
    assert len(one) == 10


def test_adapting_repeats_then_shards_then_skips() -> None:
    adapted = adapt_batch_sampler(batches(6), repeat=True, skip=1, num_replicas=2, rank=1)
    assert list(islice(adapted, 3)) == [[0, 1], [4, 5], [2, 3]]
    assert adapt_batch_sampler(inner := batches()) is inner
