"""Results of benchmarks are kept as they were printed, and the page shows those that missed a limit too."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[4]


def load(monkeypatch: pytest.MonkeyPatch, path: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools/pages"))
    spec = importlib.util.spec_from_file_location(f"tested_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module.
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_what_a_benchmark_printed_reaches_the_page_whether_it_met_its_limit_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, page = load(monkeypatch, "benchmarks/run.py"), load(monkeypatch, "tools/pages/benchmarks_page.py")
    monkeypatch.setattr(runner, "HERE", tmp_path)
    (tmp_path / "good.py").write_text("print('1.31x of the peer')")
    (tmp_path / "bad.py").write_text("print('0.62x of the peer')\nraise SystemExit(1)")
    kept = tmp_path / "latest.json"
    for name in ("good", "bad", "good"):
        runner.record(kept, runner.run(name))
    results = json.loads(kept.read_text())
    assert list(results) == ["bad", "good"]
    assert results["good"]["output"] == ["1.31x of the peer"]
    assert "cores of" in results["good"]["machine"]
    text = page.section(results)
    assert "| [`bad`](#result-of-bad) | **missed a limit, or failed** |" in text
    assert "| [`good`](#result-of-good) | passed |" in text
    assert "```text\n0.62x of the peer\n```" in text


def test_a_later_run_with_options_takes_the_place_of_its_benchmark_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, page = load(monkeypatch, "benchmarks/run.py"), load(monkeypatch, "tools/pages/benchmarks_page.py")
    monkeypatch.setattr(runner, "HERE", tmp_path)
    for name in ("one", "other"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        text = 'import sys\nif __name__ == "__main__":\n    print(sys.argv[1:])\n'
        (tmp_path / f"folder/{name}.py").write_text(text)
    kept = tmp_path / "latest.json"
    for words in (["folder"], ["folder/one", "--", "--minutes", "5"]):
        monkeypatch.setattr(sys, "argv", ["run.py", "--json", str(kept), *words])
        runner.main()
    results = json.loads(kept.read_text())
    assert {name: result["output"] for name, result in results.items()} == {
        "folder/one": ["['--minutes', '5']"],
        "folder/other": ["[]"],
    }
    assert "`python benchmarks/folder/one.py --minutes 5`" in page.section(results)
    monkeypatch.setattr(sys, "argv", ["run.py", "folder", "--", "--minutes", "5"])
    with pytest.raises(SystemExit):
        runner.main()


@pytest.mark.parametrize(
    ("output", "passed", "outcome"),
    [
        (["2.1x of the peer"], True, "passed"),
        (["absent: MLflow; pip install it", "2.1x of SQLite"], True, "passed, without MLflow"),
        (
            ["absent: ray; see above", "absent: optuna; see above"],
            False,
            "**missed a limit, or failed**, without ray, optuna",
        ),
        (["skipped: Chromium is not here"], True, "not run"),
    ],
)
def test_a_peer_that_was_absent_is_said(
    output: list[str], passed: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = load(monkeypatch, "tools/pages/benchmarks_page.py")
    assert page.outcome({"output": output, "passed": passed}) == outcome


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    page = load(monkeypatch, "tools/pages/benchmarks_page.py")
    results = json.loads(page.RESULTS.read_text()) if page.RESULTS.exists() else {}
    assert page.SECTION.holds(page.section(results))
