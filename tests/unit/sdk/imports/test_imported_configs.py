"""The config of an experiment of another cluster: as its author wrote it, with what that cluster settled."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from resolute.imports.experiments import storage_section, submitted_config

MASK = "********"


def told(written: dict[str, Any] | None, settled: dict[str, Any]) -> dict[str, Any]:
    """An experiment as the other cluster tells it."""
    original = {"name": "n", **({} if written is None else {"checkpoint_storage": written})}
    return {
        "originalConfig": yaml.safe_dump(original),
        "config": {"name": "n", "checkpoint_storage": settled, "reproducibility": {"experiment_seed": 4}},
    }


@pytest.mark.parametrize(
    ("written", "settled", "section"),
    [
        (None, {"type": "s3", "bucket": "b", "secret_key": MASK}, {"type": "s3", "bucket": "b"}),
        (
            {"type": "s3", "secret_key": "sesame"},
            {"type": "s3", "bucket": "b", "secret_key": MASK},
            {"type": "s3", "bucket": "b", "secret_key": "sesame"},
        ),
        (
            {"type": "azure", "connection_string": "AccountName=ada;AccountKey=k"},
            {"type": "azure", "container": "c", "connection_string": MASK},
            {"type": "azure", "container": "c", "connection_string": "AccountName=ada;AccountKey=k"},
        ),
        (
            {"type": "shared_fs", "host_path": "/a"},
            {"type": "s3", "bucket": "b"},
            {"type": "s3", "bucket": "b"},
        ),
        ({"type": "s3"}, {}, {}),
    ],
)
def test_what_is_masked_of_a_storage_is_as_its_author_wrote_it(
    written: dict[str, Any] | None, settled: dict[str, Any], section: dict[str, Any]
) -> None:
    old = told(written, settled)
    assert storage_section(old) == section
    config = yaml.safe_load(submitted_config(old, workspace="w", project="p"))
    assert config.get("checkpoint_storage") == (section or written)
    assert (config["workspace"], config["reproducibility"]) == ("w", {"experiment_seed": 4})
