"""Orders of lists have the values that Determined's clients send and read."""

from __future__ import annotations

from enum import Enum

import pytest

from resolute import client

VALUES: tuple[tuple[type[Enum], str, str], ...] = (
    (client.OrderBy, "ORDER_BY_ASC", "ASCENDING"),
    (client.OrderBy, "ORDER_BY_DESC", "DESC"),
    (client.ExperimentSortBy, "SORT_BY_SEARCHER_METRIC_VAL", "SEARCHER_METRIC_VAL"),
    (client.TrialSortBy, "SORT_BY_BATCHES_PROCESSED", "BATCHES_PROCESSED"),
    (client.CheckpointSortBy, "SORT_BY_UUID", "UUID"),
    (client.ModelSortBy, "SORT_BY_LAST_UPDATED_TIME", "LAST_UPDATED_TIME"),
)


@pytest.mark.parametrize(("enumeration", "value", "name"), VALUES)
def test_members_are_made_of_their_values_and_have_them(
    enumeration: type[Enum], value: str, name: str
) -> None:
    assert enumeration(value) is enumeration[name]
    assert enumeration[name].value == value
