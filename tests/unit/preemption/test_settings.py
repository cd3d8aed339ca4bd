from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_preemption.settings import PreemptionSettings


def test_without_variables_the_defaults_stand() -> None:
    assert PreemptionSettings.from_environment({"RESOLUTE_PREEMPTION_HEARTBEAT": ""}) == PreemptionSettings()


def test_variables_are_read() -> None:
    settings = PreemptionSettings.from_environment(
        {"RESOLUTE_PREEMPTION_HEARTBEAT": "1.5", "RESOLUTE_PREEMPTION_FIRST_PAUSE": "2"}
    )
    assert settings == PreemptionSettings(heartbeat=1.5, first_pause=2.0)


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_wrong_variables_are_named(value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_PREEMPTION_LIFETIME"):
        PreemptionSettings.from_environment({"RESOLUTE_PREEMPTION_LIFETIME": value})


def test_the_earlier_name_of_the_silence_timeout_is_accepted() -> None:
    settings = PreemptionSettings.from_environment({"RESOLUTE_PREEMPTION_PATIENCE": "7"})
    assert settings == PreemptionSettings(silence_timeout=7.0)
