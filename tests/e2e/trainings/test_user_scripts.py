"""Programs as users of the documented API wrote them run to their end, as they are."""

from __future__ import annotations

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.clusters.user_scripts import LAUNCHED, NAMES, run_script


def test_there_are_thirty_five_scripts() -> None:
    assert len(NAMES) == 35
    assert LAUNCHED.keys() < set(NAMES)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LAUNCHED])
def test_script_of_a_user(cluster: EmbeddedCluster, name: str) -> None:
    run_script(cluster, name)
