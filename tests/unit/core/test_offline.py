"""A run without a cluster is recorded in a directory."""

import json
from pathlib import Path

import pytest

import resolute
from resolute import core
from resolute.contracts.spool.format import Report, Row
from resolute.core.distributed import DummyDistributedContext
from resolute.errors import DataLossError
from resolute.runtime.offline_run import OfflineRun, find_runs
from resolute.spool.reader import SpoolReader


@pytest.fixture(autouse=True)
def off_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: None)
    monkeypatch.delenv("RESOLUTE_OFFLINE_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def never(failure: DataLossError) -> None:
    raise failure


def test_reports_and_metadata_lie_in_a_directory_of_the_run(tmp_path: Path) -> None:
    with core.init(offline_dir=tmp_path / "runs") as context:
        context.train.report_training_metrics(steps_completed=3, metrics={"loss": 0.5})
        context.train.report_metrics("mine", steps_completed=4, metrics={"note": "x"})
        context.train.flush()
        assert context.train.set_metadata({"a": 1}) == {"a": 1}

    (run,) = find_runs(tmp_path / "runs", unreadable=never)
    (path,) = run.spool.glob("*.metrics")
    row, report = SpoolReader(path).peek().records()
    assert isinstance(row, Row)
    assert isinstance(report, Report)
    assert (row.schema.group, row.steps, row.values) == ("training", 3, (0.5,))
    assert (report.group, report.steps, report.values) == ("mine", 4, {"note": "x"})
    assert run.metadata == {"a": 1}
    assert run.ended_at() >= run.started_at


def test_each_run_gets_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_OFFLINE_DIR", str(tmp_path / "runs"))
    for _ in range(2):
        with core.init(distributed=DummyDistributedContext()):
            pass
    assert len(find_runs(tmp_path / "runs", unreadable=never)) == 2


def test_without_a_directory_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with core.init() as context:
        context.train.report_training_metrics(steps_completed=3, metrics={"loss": 0.5})
    assert not list(tmp_path.rglob("run.json"))


@pytest.mark.parametrize("content", ["", "{}", '{"version": 9}', '{"version": 1, "run_id": "x"}'])
def test_what_is_no_run_is_an_error_that_names_the_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    failures: list[DataLossError] = []
    assert find_runs(tmp_path, unreadable=failures.append) == []
    (failure,) = failures
    assert str(tmp_path / "run.json") in str(failure)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    run = OfflineRun.create(tmp_path, run_id="6f0f3a52-8f0c-4d0c-8e55-51e2d3ecdf43", name="n", now=1.5)
    changed = run.with_metadata({"k": [1]})
    assert OfflineRun.load(run.directory) == changed
    assert json.loads((run.directory / "run.json").read_text())["version"] == 1
