"""Whatever is handed in, the answer is a config or a ConfigError."""

import difflib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolute.contracts.documents.faults import ConfigError
from resolute.contracts.documents.section import Section
from resolute_config.experiment import ExperimentConfig
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_config.sections.hyperparameters import KINDS
from resolute_config.sections.searcher import REMOVED, SEARCHERS
from resolute_config.sections.storage import STORAGES


def all_sections(parent: type[Section] = Section) -> list[type[Section]]:
    return [section for child in parent.__subclasses__() for section in (child, *all_sections(child))]


FIELDS = sorted(
    {field for section in all_sections() for field in section.model_fields} | {"gpu", "batches", "nope"}
)
WORDS = [
    *SEARCHERS,
    *REMOVED,
    *STORAGES,
    *KINDS,
    "model:Trial",
    "",
    "1e999",
    "/a",
    "/a:/b",
    "4 GiB",
    "A=1",
    "(",
    "no",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**63, 10**400, 0.5, 1e308, float("nan"), float("inf")]),
    st.sampled_from(WORDS),
    st.text(max_size=4),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=2),
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(sorted(ExperimentConfig.model_fields)), VALUES, max_size=6)


def is_answered(text: Any, *layers: Layer) -> bool:
    try:
        config = parse_config(text, layers=layers)
    except ConfigError as error:
        return all(fault.problem and str(fault) for fault in error.faults)
    return parse_config(config.to_dict()) == config


@settings(max_examples=400)
@given(DOCUMENTS, DOCUMENTS)
def test_any_data_is_answered(document: dict[str, Any], template: dict[str, Any]) -> None:
    assert is_answered(document, Layer("template", template))


@settings(max_examples=300)
@given(st.one_of(st.text(), st.text("{}[]:,-&*!|>%@`'\"#a1 \n\t", max_size=30), st.binary(max_size=30)))
def test_any_text_is_answered(text: str | bytes) -> None:
    assert is_answered(text)


@pytest.mark.parametrize("section", ["searcher", "checkpoint_storage"])
def test_many_unknown_fields_beside_a_wrong_kind_are_not_compared_with_all_known_names(
    section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    real = difflib.get_close_matches

    def noted(word: str, names: list[str], **options: Any) -> list[str]:
        if names:
            compared.append(word)
        return real(word, names, **options)

    monkeypatch.setattr(difflib, "get_close_matches", noted)
    fields = {f"unknown{number}": 1 for number in range(1_000)}
    kind = {"searcher": "name", "checkpoint_storage": "type"}[section]
    with pytest.raises(ConfigError):
        parse_config({section: {kind: "rnd", **fields}})
    assert set(compared) == {"rnd"}
