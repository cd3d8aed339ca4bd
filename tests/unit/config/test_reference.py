"""The reference page of the config."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from resolute.contracts.documents.faults import ConfigError
from resolute.contracts.documents.section import Section
from resolute_config.experiment import ExperimentConfig
from resolute_config.ineffective_fields import LOCAL_PROCESSES, ineffective_fields
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_config.sections.hyperparameters import KINDS
from resolute_config.sections.length import UNITS
from resolute_config.sections.searcher import REMOVED, SEARCHERS
from resolute_config.sections.storage import STORAGES

PAGE = Path(__file__).parents[3] / "docs" / "config.md"


def sections_in(annotation: Any, suffix: str = "") -> Iterator[tuple[type[Section], str]]:
    """The sections of a field, each with what its path has appended: ``[]`` for the items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation, suffix
    for part in get_args(annotation):
        yield from sections_in(part, "[]" if get_origin(annotation) is tuple else suffix)


def fields(section: type[Section], path: str = "") -> Iterator[str]:
    for name, info in section.model_fields.items():
        yield f"{path}{name}"
        if path or name not in {"searcher", "checkpoint_storage"}:
            for below, suffix in sections_in(info.annotation):
                yield from fields(below, f"{path}{name}{suffix}.")


def every_field() -> list[str]:
    found = list(fields(ExperimentConfig))
    for searcher in SEARCHERS.values():
        found += fields(searcher, "searcher.")
    for storage in STORAGES.values():
        found += fields(storage, "checkpoint_storage.")
    for kind in KINDS.values():
        found += fields(kind, "hyperparameters.*.")
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def named() -> set[str]:
    """What the page names in the first column of its tables, and in code anywhere."""
    return set(re.findall(r"`([^`\n]+)`", PAGE.read_text()))


@pytest.mark.parametrize("field", every_field())
def test_every_field_is_on_the_page(named: set[str], field: str) -> None:
    assert field in named


def test_every_kind_of_search_storage_and_hyperparameter_is_on_the_page(named: set[str]) -> None:
    assert named.issuperset([*SEARCHERS, *REMOVED, *STORAGES, *KINDS, *UNITS])


def test_the_page_names_no_field_that_does_not_exist() -> None:
    known = set(every_field())
    rows = re.findall(r"^\| `([a-z_.*\[\]]+)` \| [^|]+ \| [^|]+ \|", PAGE.read_text(), flags=re.MULTILINE)
    assert len(rows) > 100
    assert [row for row in rows if row not in known] == []


def test_every_field_without_effect_is_marked() -> None:
    marked = set(re.findall(r"^\| `([^`]+)` \|.*†", PAGE.read_text(), flags=re.MULTILINE))
    assert {row.path for row in LOCAL_PROCESSES} == marked


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_example_is_a_config() -> None:
    (example,) = blocks("yaml")
    storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/data"}}
    config = parse_config(example, layers=[Layer("cluster defaults", storage)])
    assert ineffective_fields(config) == []


def test_the_example_of_an_error_is_what_one_gets() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(
            {
                "entrypoint": "x",
                "searcher": {"name": "single", "max_lenght": 1},
                "resources": {"slots_per_trial": -1},
                "checkpoint_storage": {"type": "shared_fs", "host_path": "/data"},
            }
        )
    (shown,) = blocks("text")
    assert str(caught.value) == shown.rstrip()
