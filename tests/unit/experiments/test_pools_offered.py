"""What configs may ask of pools."""

from __future__ import annotations

from typing import Any

import pytest

from resolute.errors import InvalidConfigError
from resolute_experiments.admission.pools import PoolsOffered, PoolTerms

HERE = PoolTerms(name="default", most_slots=4, largest_node=2)
FAR = PoolTerms(name="far", most_slots=None, largest_node=8)
NAMED = PoolsOffered(pools=(HERE, FAR), named=True)


def config(pool: str = "", *, slots: int = 1, single_node: bool | None = None) -> dict[str, Any]:
    return {"resources": {"resource_pool": pool, "slots_per_trial": slots, "is_single_node": single_node}}


def test_a_config_gets_the_pool_that_it_names_or_the_first() -> None:
    assert NAMED.chosen(config()) is HERE
    assert NAMED.chosen(config("far")) is FAR


def test_a_pool_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(InvalidConfigError, match=r"resources.resource_pool: found 'gpu'; .*: default, far"):
        NAMED.chosen(config("gpu"))


def test_a_pool_that_is_nearly_there_is_suggested() -> None:
    with pytest.raises(InvalidConfigError, match=r"default, far; did you mean 'default'\?"):
        NAMED.chosen(config("defualt"))


def test_where_no_settings_name_pools_every_name_is_this_machine() -> None:
    assert PoolsOffered(pools=(HERE,)).chosen(config("gpu")) is HERE


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        (config(slots=5), "found 5; expected at most 4, the slots of pool 'default'"),
        (config(slots=3, single_node=True), "at most 2, the slots of the largest node of pool 'default'"),
        (config("far", slots=9, single_node=True), "at most 8"),
    ],
)
def test_more_slots_than_the_pool_has_are_refused(wanted: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidConfigError, match=fault):
        NAMED.check_slots(wanted)


def test_what_only_an_engine_knows_is_left_to_it() -> None:
    NAMED.check_slots(config("far", slots=1000))
