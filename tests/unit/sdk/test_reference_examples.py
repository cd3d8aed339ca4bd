"""Examples in the reference of Python run, and the list of names without one only gets shorter."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reference_examples import CLIENT, WITHOUT_CLUSTER, has_example, offered, run_examples

WITHOUT = Path(__file__).with_name("names_without_example.txt")


def test_every_name_has_an_example_or_is_on_the_list_of_those_that_need_one() -> None:
    names = offered(CLIENT, *WITHOUT_CLUSTER)
    missing = sorted(name for name, value in names.items() if not has_example(value))
    listed = WITHOUT.read_text().split()
    assert [name for name in missing if name not in listed] == [], "write an example for what is new"
    assert [name for name in listed if name not in missing] == [], f"take these out of {WITHOUT.name}"


def test_the_examples_run_one_by_one_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("RESOLUTE_MASTER", "DET_MASTER", "RESOLUTE_OFFLINE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    count, failures = run_examples(*WITHOUT_CLUSTER)
    assert failures == ""
    assert count >= 40
