"""Examples in the reference of Python run, and the list of names without one only gets shorter."""

from __future__ import annotations

import doctest
import inspect
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from docs_site.python_api import public_names  # noqa: E402

MODULES = ("resolute.core", "resolute.core_v2", "resolute.searcher", "resolute.client", "resolute.pytorch")
WITHOUT = Path(__file__).with_name("names_without_example.txt")


def offered() -> dict[str, object]:
    """Everything that these modules offer, by its name."""
    return {
        f"{name}.{one}": getattr(import_module(name), one)
        for name in MODULES
        for one in public_names(import_module(name))
    }


def has_example(value: object) -> bool:
    return ">>> " in (inspect.getdoc(value) or "")


def test_every_name_has_an_example_or_is_on_the_list_of_those_that_need_one() -> None:
    missing = sorted(name for name, value in offered().items() if not has_example(value))
    listed = WITHOUT.read_text().split()
    assert [name for name in missing if name not in listed] == [], "write an example for what is new"
    assert [name for name in listed if name not in missing] == [], f"take these out of {WITHOUT.name}"


def test_the_examples_run_one_by_one_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("RESOLUTE_MASTER", "DET_MASTER", "RESOLUTE_OFFLINE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said: list[str] = []
    # A class may be offered by several modules.
    examples = {id(value): (name, value) for name, value in offered().items() if has_example(value)}
    assert len(examples) >= 12
    for name, value in examples.values():
        test = parser.get_doctest(inspect.getdoc(value) or "", {}, name, None, None)
        runner.run(test, out=said.append)
    with capsys.disabled():
        assert runner.summarize(verbose=False).failed == 0, "".join(said)
