"""Limits from the environment."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_metrics.limits import Limits


def test_limits_have_defaults_and_variables() -> None:
    assert Limits.from_environment({}) == Limits()
    assert Limits.from_environment({"RESOLUTE_METRICS_MAX_NAMES": "5"}).names == 5


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_wrong_limit_is_an_error_that_names_the_variable(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_METRICS_MAX_COMBINATIONS"):
        Limits.from_environment({"RESOLUTE_METRICS_MAX_COMBINATIONS": text})
