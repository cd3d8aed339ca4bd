from __future__ import annotations

import logging
from collections import namedtuple
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, RandomSampler, WeightedRandomSampler

from resolute.pytorch import DataLoader, data_length, to_device

NUMBERS: Any = list(range(10))


def read(loader: DataLoader, count: int, **options: Any) -> list[list[int]]:
    made = loader.get_data_loader(repeat=True, seed=5, **options)
    return [batch.tolist() for batch in islice(made, count)]


@pytest.mark.parametrize("skip", [0, 1, 4, 5, 13])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"drop_last": True},
        {"sampler": RandomSampler(NUMBERS)},
        {"sampler": WeightedRandomSampler([1.0] * 10, 10)},
    ],
    ids=["plain", "shuffle", "drop_last", "random", "weighted"],
)
def test_a_loader_that_skips_yields_what_comes_after(options: dict[str, Any], ranks: int, skip: int) -> None:
    def make() -> DataLoader:
        fresh = dict(options)
        if isinstance(fresh.get("sampler"), WeightedRandomSampler):
            fresh["sampler"] = WeightedRandomSampler([1.0] * 10, 10)
        return DataLoader(NUMBERS, batch_size=3, **fresh)

    for rank in range(ranks):
        whole = read(make(), 20, num_replicas=ranks, rank=rank)
        assert read(make(), 20 - skip, skip=skip, num_replicas=ranks, rank=rank) == whole[skip:]


def test_ranks_share_one_shuffle_without_overlap() -> None:
    loader = DataLoader(NUMBERS, batch_size=2, shuffle=True)
    alone = read(loader, 10)
    assert sorted(index for batch in alone[:5] for index in batch) == NUMBERS
    assert alone[:5] != alone[5:]
    together = [read(loader, 5, num_replicas=2, rank=rank) for rank in range(2)]
    assert [batch for pair in zip(*together, strict=True) for batch in pair] == alone


def test_a_shuffle_follows_from_the_generator_if_there_is_one() -> None:
    orders = [
        read(DataLoader(NUMBERS, shuffle=True, generator=torch.Generator().manual_seed(seed)), 10)
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_loading_takes_nothing_from_the_random_numbers_of_training() -> None:
    state = torch.get_rng_state()
    list(DataLoader(NUMBERS, batch_size=3, shuffle=True).get_data_loader())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_loader_works_by_itself() -> None:
    loader = DataLoader(NUMBERS, batch_size=4)
    assert len(loader) == 3
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(DataLoader(NUMBERS, batch_size=4, drop_last=True)) == 2
    assert len(DataLoader(NUMBERS, batch_sampler=[[1], [2]])) == 2


class Random(Dataset[Any]):
    label = "kept"

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return torch.cat([torch.rand(1), torch.tensor([np.random.random()])])


def test_random_numbers_of_workers_follow_from_the_batch() -> None:
    loader = DataLoader(Random(), batch_size=2, num_workers=2)
    whole = read(loader, 6)
    assert read(loader, 4, skip=2) == whole[2:]
    assert read(loader, 2, skip=2, num_replicas=2, rank=1) != read(loader, 2, skip=2, num_replicas=2, rank=0)
    assert loader.get_data_loader().dataset.label == "kept"  # type: ignore[attr-defined]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(NUMBERS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": Endless()}, "IterableDataset"),
        ({"batch_size": None}, "batch_size is None"),
        ({"batch_size": 0}, "at least 1"),
        ({"sampler": [1], "shuffle": True}, "exclude each other"),
        ({"batch_sampler": [[1]], "drop_last": True}, "excludes batch_size"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(**{"dataset": NUMBERS, **arguments})


Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - what users have


def test_batches_are_moved_however_nested() -> None:
    batch = {
        "arrays": [np.ones(2), (np.zeros(1, dtype=np.int64),)],
        "pair": Pair(torch.ones(1), {"x": torch.ones(2)}),
        "text": "a",
    }
    moved = to_device(batch, torch.device("meta"))
    assert moved["arrays"][0].device.type == "meta"
    assert isinstance(moved["arrays"][1], tuple)
    assert isinstance(moved["pair"], Pair)
    assert moved["pair"].right["x"].device.type == "meta"
    assert moved["text"] == "a"


def test_what_cannot_be_moved_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    warned: set[type] = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            to_device([object(), np.array(["text"])], torch.device("cpu"), warned)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("batch", [torch.ones(3, 2), np.ones(3), {"x": [torch.ones(3)]}, (torch.ones(3), 1)])
def test_the_length_of_a_batch_is_that_of_its_first_tensor(batch: Any) -> None:
    assert data_length(batch) == 3


def test_a_length_that_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="get_batch_length"):
        data_length(3)
    with pytest.raises(ValueError, match="empty"):
        data_length([])
