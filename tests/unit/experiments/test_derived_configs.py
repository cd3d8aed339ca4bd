"""What configs of new experiments take from the one that they are derived from."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from resolute_experiments.continuation.derived_configs import forked_config
from resolute_experiments.store.experiments import Experiment


@pytest.mark.parametrize(
    ("named", "ran_in", "derived"),
    [("far", "far", "far"), ("compute-pool", "", ""), ("gpu", "default", "default"), ("", "default", "")],
    ids=["in the pool that it named", "imported", "where the name had no effect", "where no pool was named"],
)
def test_a_fork_goes_to_the_pool_that_its_origin_ran_in(named: str, ran_in: str, derived: str) -> None:
    config = {"searcher": {}, "resources": {"resource_pool": named, "slots_per_trial": 2}}
    origin = Mock(spec=Experiment, config=config, resource_pool=ran_in, workspace="w", project="p", label="e")
    origin.name = "e"
    content = forked_config(origin).content
    assert isinstance(content, dict)
    assert content["resources"] == {"resource_pool": derived, "slots_per_trial": 2}
