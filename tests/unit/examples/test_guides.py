"""What the guides show runs, or says why not; every reason of an error is in the page of symptoms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.cli.registry.error_reasons import ERROR_REASONS
from resolute_config.loading.parse import parse_config
from resolute_experiments.specs.search import search_spec
from resolute_searcher.methods import registry
from resolute_searcher.planning.answers import simulation_answer

DOCS = Path(__file__).parents[3] / "docs"


def test_the_training_loop_of_the_guide_trains_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    text = (DOCS / "extending.md").read_text()
    (block,) = [block for block in blocks(text, "python") if "def fit" in block]
    names: dict[str, Any] = {}
    exec(compile(block, "extending.md", "exec"), names)
    assert capsys.readouterr().out == "1 steps\n"
    assert [path.read_text() for path in tmp_path.glob("**/done")] == ["1"]


def test_the_search_method_of_the_guide_is_built_and_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "extending.md").read_text()
    (distribution,) = blocks(text, "toml")
    (config,) = [block for block in blocks(text, "yaml") if "name: plugin" in block]
    (method,) = [block for block in blocks(text, "python") if "MethodKind" in block]
    names: dict[str, Any] = {}
    exec(compile(method, "one_by_one.py", "exec"), names)
    searcher = yaml.safe_load(config)["searcher"]
    name = searcher["method"]
    assert f'{name} = "{name}:KIND"' in distribution
    assert f"`{name}.py`" in text

    monkeypatch.setattr(registry, "plugin_kind", {name: names["KIND"]}.__getitem__)
    storage = {"type": "directory", "container_path": "/any"}
    whole = parse_config({**yaml.safe_load(config), "name": "any", "checkpoint_storage": storage})
    spec = search_spec(whole.model_dump(mode="json"))
    asked = service_pb.SimulateSearchRequest(spec=spec).SerializeToString()
    told = service_pb.SimulateSearchResponse.FromString(simulation_answer(asked))
    assert list(told.trial_lengths) == [3, 3, 3, 3]
    assert list(told.trial_starts) == [0, 3, 6, 9], "one after another"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_reason_of_an_error_is_in_the_page_of_symptoms() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    assert [name for name in ERROR_REASONS if f"(errors.md#{name.lower()})" not in page] == []
