from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.settings import CheckpointSettings


def test_without_variables_the_defaults_stand() -> None:
    assert CheckpointSettings.from_environment({}) == CheckpointSettings()


def test_variables_are_read() -> None:
    settings = CheckpointSettings.from_environment(
        {
            "RESOLUTE_CHECKPOINTS_ROOTS": "/a:/b",
            "RESOLUTE_CHECKPOINTS_ABANDON_SECONDS": "10",
            "RESOLUTE_CHECKPOINTS_ORPHAN_SECONDS": "20.5",
            "RESOLUTE_CHECKPOINTS_COLLECT_SECONDS": "1",
        }
    )
    assert settings == CheckpointSettings(
        roots=(Path("/a"), Path("/b")), abandon_seconds=10, orphan_seconds=20.5, collect_seconds=1
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("ROOTS", "relative"), ("ABANDON_SECONDS", "soon"), ("COLLECT_SECONDS", "0"), ("ORPHAN_SECONDS", "nan")],
)
def test_wrong_variables_are_named(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"RESOLUTE_CHECKPOINTS_{name}"):
        CheckpointSettings.from_environment({f"RESOLUTE_CHECKPOINTS_{name}": value})
