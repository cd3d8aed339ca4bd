"""Every field of configs of Determined 0.30 and 0.38 is read, warned of, or refused by its own sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resolute.contracts.documents.faults import ConfigError
from resolute_config.ineffective_fields import ineffective_fields
from resolute_config.loading.parse import parse_config
from resolute_config.loading.steps import steps_warning

ROWS = [
    json.loads(line) for line in (Path(__file__).parent / "determined_fields.jsonl").read_text().splitlines()
]
SMALLEST: dict[str, Any] = {
    "name": "n",
    "entrypoint": "python3 t.py",
    "checkpoint_storage": {"type": "directory", "container_path": "/c"},
    "searcher": {"name": "single", "metric": "m"},
}
REFUSED = {
    "environment.pod_spec over": "is not configurable",
    "security.kerberos.config_file, empty": "text that is not empty",
    "log_policies.action.type send_webhook": "one of 'cancel_retries' or 'exclude_node'",
    "log_policies.signal": "give it as name",
    "log_pattern_policies": "log_policies",
    "checkpoint_storage.user": "HDFS",
    "checkpoint_storage.hdfs": "shared_fs",
    "searcher. of adaptive": "adaptive_asha, such as",
    "searcher. of sync_halving": "adaptive_asha, such as",
    "searcher. of pbt": "adaptive_asha, such as",
}
"""What is refused, with words of the sentence that says what to use instead."""


def sentence(field: str) -> str:
    """Words of the refusal of a field; empty for one that is accepted."""
    section, _, variant = field.partition(" of ")
    for name, words in REFUSED.items():
        of = name.partition(" of ")
        if field.startswith(name) or (of[2] and section.startswith(of[0]) and variant == of[2]):
            return words
    return ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["field"])
def test_no_field_fails_bare(row: dict[str, Any]) -> None:
    words = sentence(row["field"])
    written = {**SMALLEST, **row["config"]}
    if words:
        with pytest.raises(ConfigError) as refused:
            parse_config(written)
        assert words in str(refused.value)
        assert "did you mean" not in str(refused.value)
        return
    config = parse_config(written)
    assert parse_config(config.to_dict()) == config
    ineffective_fields(config)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({"searcher": {"name": "adaptive_simple"}}, "searcher.name: adaptive_simple is adaptive_asha"),
        ({"min_validation_period": 2}, "min_validation_period: 2 is {batches: 200}"),
        ({"min_checkpoint_period": 1, "batches_per_step": 10}, "min_checkpoint_period: 1 is {batches: 10}"),
    ],
)
def test_what_has_one_meaning_is_converted_and_shown(written: dict[str, Any], shown: str) -> None:
    (warning,) = steps_warning(written)
    assert shown in warning
