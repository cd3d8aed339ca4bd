"""Configs of other clusters: none is so odd that its experiment could not be kept."""

from __future__ import annotations

import pytest

from resolute_experiments.imports.configs import read_imported_config
from resolute_experiments.specs.storage import storage

DEFAULTS = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}
ODD = [
    "- a list",
    "{",
    "a: &x [*x]",
    "searcher: 7",
    "checkpoint_storage: [1]",
    "environment: none",
    "",
    "resources: {}",
]


@pytest.mark.parametrize("text", ODD)
def test_a_document_that_is_no_config_is_kept_above_the_defaults(text: str) -> None:
    read = read_imported_config("old", text, DEFAULTS)
    assert read.fault
    assert read.content["searcher"]["metric"] == "loss"
    assert read.content["resources"]["slots_per_trial"] == 1
    assert storage(read.content).directory.path == "/c"


def test_a_config_without_a_seed_gets_the_same_one_each_time() -> None:
    text = (
        "{name: n, entrypoint: python t.py, searcher: {name: single, metric: loss, max_length: {batches: 1}}}"
    )
    first, second = (read_imported_config("n", text, DEFAULTS) for _ in range(2))
    assert first == second
    assert not first.fault
