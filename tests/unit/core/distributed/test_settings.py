"""What the environment says about collectives."""

import pytest

from resolute.core.distributed.settings import (
    DEFAULT_PULL_PORT,
    DEFAULT_START_TIMEOUT,
    CollectiveSettings,
)


def test_an_empty_environment_means_the_defaults() -> None:
    settings = CollectiveSettings.from_environment({})

    assert settings == CollectiveSettings()
    assert settings.start_timeout == DEFAULT_START_TIMEOUT
    assert settings.timeout is None
    assert settings.key is None


def test_every_variable_is_read() -> None:
    settings = CollectiveSettings.from_environment(
        {
            "RESOLUTE_COLLECTIVE_KEY": "secret",
            "RESOLUTE_COLLECTIVE_START_TIMEOUT": "30",
            "RESOLUTE_COLLECTIVE_TIMEOUT": "1.5",
            "DET_ALLOCATION_ID": "7.1",
            "DET_UNIQUE_PORT_OFFSET": "3",
        }
    )

    assert settings == CollectiveSettings(b"secret", None, 30.0, 1.5, "7.1", 3)


def test_the_ports_of_the_environment_replace_the_default() -> None:
    settings = CollectiveSettings.from_environment(
        {"RESOLUTE_COLLECTIVE_PORTS": "40001, 40002", "DET_UNIQUE_PORT_OFFSET": "3"}
    )

    assert settings.pull_port(DEFAULT_PULL_PORT, settings.port_offset) == 40002


def test_a_port_that_the_script_chose_stays() -> None:
    settings = CollectiveSettings.from_environment({"RESOLUTE_COLLECTIVE_PORTS": "40001,40002"})

    assert settings.pull_port(50000, 0) == 50000


def test_an_offset_keeps_jobs_on_one_host_apart() -> None:
    settings = CollectiveSettings.from_environment({"DET_UNIQUE_PORT_OFFSET": "3"})

    assert settings.pull_port(DEFAULT_PULL_PORT, settings.port_offset) == 12379


def test_a_port_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="is not between 1 and 65535"):
        CollectiveSettings().pull_port(65535, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RESOLUTE_COLLECTIVE_PORTS", "40001"),
        ("RESOLUTE_COLLECTIVE_PORTS", "40001,high"),
        ("RESOLUTE_COLLECTIVE_PORTS", "0,70000"),
        ("RESOLUTE_COLLECTIVE_START_TIMEOUT", "soon"),
        ("RESOLUTE_COLLECTIVE_START_TIMEOUT", "0"),
        ("RESOLUTE_COLLECTIVE_TIMEOUT", "-1"),
        ("RESOLUTE_COLLECTIVE_TIMEOUT", "nan"),
        ("RESOLUTE_COLLECTIVE_TIMEOUT", "inf"),
        ("DET_UNIQUE_PORT_OFFSET", "x"),
    ],
)
def test_a_malformed_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        CollectiveSettings.from_environment({name: value})
