"""A trial that runs again without its cluster: what `resolute reproduce` writes decides what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import resolute
from resolute import core
from resolute.errors import DataLossError
from resolute.info import DIRECTORY_VARIABLE, ClusterInfo, RendezvousInfo, TrialInfo
from resolute.runtime.local_task import LocalTask
from resolute.trials.search_metric import is_time_driven


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resolute.info, "_info", "unloaded")
    (tmp_path / "info").mkdir()
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "info"))
    return tmp_path


def write(directory: Path, searcher: dict[str, Any], *lengths: int) -> None:
    ClusterInfo(
        master_url="",
        cluster_id="cluster",
        agent_id="local",
        slot_ids=[0],
        task_id="task",
        allocation_id="allocation",
        session_token="",
        task_type="TRIAL",
        trial_info=TrialInfo(12, 3, 4711, {"lr": 0.5}, {"searcher": searcher}, 0, 1),
        rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [1]),
        local=LocalTask(checkpoints="../checkpoints", lengths=lengths),
    ).write(directory / "info")


def test_it_has_the_hyperparameters_the_seed_and_the_operations_of_the_trial(directory: Path) -> None:
    write(directory, {"max_length": {"batches": 16}}, 4, 16)
    info = resolute.get_cluster_info()
    assert info is not None
    assert (info.trial.trial_id, info.trial.trial_seed, info.trial.hparams) == (12, 4711, {"lr": 0.5})
    # Where the script wants checkpoints, those of the trial on its cluster lie.
    with core.init(checkpoint_storage=str(directory / "shared")) as context:
        assert context.info is info
        assert context.searcher.get_configured_units() is core.Unit.BATCHES
        assert not is_time_driven(context)
        lengths = []
        for operation in context.searcher.operations():
            lengths.append(operation.length)
            with context.checkpoint.store_path({"steps_completed": operation.length}) as (_, checkpoint):
                pass
            operation.report_completed(0.5)
            assert (directory / "checkpoints" / checkpoint / "metadata.json").exists()
    assert lengths == [4, 16]
    assert not (directory / "shared").exists()


def test_without_lengths_validation_reports_drove_the_search(directory: Path) -> None:
    write(directory, {"max_length": {"epochs": 7}})
    with core.init() as context:
        assert is_time_driven(context)
        (operation,) = _completed(context)
        assert operation.length == 7
    write(directory, {"max_time": 7})
    resolute.info._info = "unloaded"
    with core.init() as context, pytest.raises(ValueError, match=r"no searcher\.max_length"):
        context.searcher.operations()


def _completed(context: core.Context) -> list[core.SearcherOperation]:
    found = []
    for operation in context.searcher.operations():
        operation.report_completed(1.0)
        found.append(operation)
    return found


@pytest.mark.parametrize("content", [{}, {"checkpoints": "c"}, {"checkpoints": "c", "lengths": ["many"]}])
def test_a_damaged_info_says_so(content: dict[str, Any]) -> None:
    with pytest.raises(DataLossError, match="resolute reproduce"):
        LocalTask.from_json(content)
