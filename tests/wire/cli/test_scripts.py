"""The Python SDK as scripts use it, against a scripted cluster."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wire.cli.scripted import ScriptedCluster

from resolute import client
from resolute.api.experiments.v1 import experiment_pb2
from resolute.errors import InvalidConfigError, NotFoundError

COMPLETED = experiment_pb2.EXPERIMENT_STATE_COMPLETED


@pytest.fixture
def determined(cluster: ScriptedCluster) -> Iterator[client.Client]:
    with client.Client() as found:
        yield found


@pytest.fixture(autouse=True)
def logged_out() -> Iterator[None]:
    yield
    client.logout()


def test_an_experiment_is_submitted_and_led(
    cluster: ScriptedCluster, determined: client.Client, code: Path
) -> None:
    experiment = determined.create_experiment(code / "const.yaml", code)
    assert repr(experiment) == "Experiment(id=1, name='digits', state=ACTIVE)"
    experiment.pause()
    assert experiment.state.name == "PAUSED"
    experiment.activate()
    experiment.cancel()
    assert experiment.state.name == "STOPPING_CANCELED"
    assert experiment.config["name"] == "digits"
    assert Path(experiment.download_code("here")).name == "exp-1_model_def.tar.gz"


def test_a_config_may_be_a_mapping(cluster: ScriptedCluster, determined: client.Client) -> None:
    cluster.state.warnings.append("weight has no effect")
    with pytest.warns(UserWarning, match="weight has no effect"):
        determined.create_experiment({"name": "x", "hyperparameters": {"lr": 1e-5}})
    assert json.loads(cluster.state.specs[0].config_yaml)["hyperparameters"] == {"lr": 1e-5}
    with pytest.raises(InvalidConfigError, match="cannot be sent"):
        determined.create_experiment({"name": object()})


def test_waiting_tells_the_state_of_the_end(cluster: ScriptedCluster, determined: client.Client) -> None:
    cluster.state.end(cluster.state.add_experiment(), COMPLETED)
    assert determined.get_experiment(1).wait(interval=0.01) is client.ExperimentState.COMPLETED


def test_nobody_can_wait_for_a_paused_experiment(cluster: ScriptedCluster, determined: client.Client) -> None:
    cluster.state.add_experiment(state=experiment_pb2.EXPERIMENT_STATE_PAUSED)
    with pytest.raises(ValueError, match="experiment 1 is paused"):
        determined.get_experiment(1).wait()


def test_experiments_are_listed_as_wanted(cluster: ScriptedCluster, determined: client.Client) -> None:
    for number in range(5):
        cluster.state.add_experiment(name=f"n{9 - number}", labels=["even"] if number % 2 == 0 else [])
    listed = [experiment.id for experiment in determined.list_experiments()]
    assert listed == [1, 2, 3, 4, 5]
    by_name = determined.list_experiments(client.ExperimentSortBy.NAME, labels=["even"])
    assert [experiment.id for experiment in by_name] == [5, 3, 1]
    chosen = determined.list_experiments(order_by=client.OrderBy.DESC, experiment_ids=[2, 4])
    assert [experiment.id for experiment in chosen] == [4, 2]
    assert by_name[0].labels == {"even"}


def test_trials_are_reached_from_their_experiment(
    cluster: ScriptedCluster, determined: client.Client
) -> None:
    experiment = cluster.state.add_experiment()
    for number in range(4):
        cluster.state.add_trial(experiment, restarts=3 - number)
    found = determined.get_experiment(1)
    assert [trial.id for trial in found.list_trials()] == [1, 2, 3, 4]
    assert [trial.id for trial in found.iter_trials(client.TrialSortBy.RESTARTS, limit=2)] == [4, 3]
    assert found.await_first_trial().id == 1
    trial = determined.get_trial(2)
    assert trial.hparams == {"lr": 0.1}
    trial.kill()
    assert trial.state is client.TrialState.STOPPING
    with pytest.raises(NotFoundError, match="there is no trial 9"):
        determined.get_trial(9)


def test_the_service_sorts_and_filters_so_that_no_page_is_read_in_vain(
    cluster: ScriptedCluster, determined: client.Client
) -> None:
    for number in range(12):
        cluster.state.add_experiment(name=f"n{20 - number}", project_id=1 + number % 2)
        cluster.state.add_trial(cluster.state.experiments[0], restarts=number % 5)

    def calls_of(work: Callable[[], list[int]]) -> tuple[list[int], int]:
        before = len(cluster.state.callers)
        return work(), len(cluster.state.callers) - before

    experiment, key = determined.get_experiment(1), client.TrialSortBy.RESTARTS
    most = calls_of(
        lambda: [trial.id for trial in experiment.iter_trials(key, client.OrderBy.DESCENDING, limit=2)]
    )
    assert most == ([5, 10], 1)
    by_name, descending = client.ExperimentSortBy.NAME, client.OrderBy.DESCENDING
    chosen = calls_of(
        lambda: [one.id for one in determined.list_experiments(by_name, descending, experiment_ids=[1, 3])]
    )
    assert chosen == ([1, 3], 2)
    of_project = calls_of(lambda: [one.id for one in determined.list_experiments(project_id=2)])
    assert of_project == ([2, 4, 6, 8, 10, 12], 2)


def test_logs_and_metrics_are_read(cluster: ScriptedCluster, determined: client.Client) -> None:
    message = cluster.state.add_trial(cluster.state.add_experiment())
    for number in range(5):
        cluster.state.add_line(message, f"line {number}")
        cluster.state.add_report(message, steps=number, loss=1.0 / (number + 1))
    cluster.state.closed_logs.add(message.trial_id)
    trial = determined.get_trial(1)
    assert list(trial.logs(tail=2)) == ["line 3\n", "line 4\n"]
    assert list(trial.iter_logs(follow=True))[-1] == "line 4\n"
    with pytest.raises(ValueError, match="head cannot be combined"):
        list(trial.iter_logs(head=1, tail=1))
    reports = list(trial.iter_metrics("validation"))
    assert [report.metrics["loss"] for report in reports][:2] == [1.0, 0.5]
    assert list(trial.iter_metrics("training")) == []
    assert len(list(determined.iter_trials_metrics([1]))) == 5


def test_checkpoints_are_ranked_by_the_searchers_metric(
    cluster: ScriptedCluster, determined: client.Client, tmp_path: Path
) -> None:
    state = cluster.state
    message = state.add_trial(state.add_experiment())
    for steps, accuracy in ((1, 0.2), (2, 0.9), (3, 0.5), (4, None)):
        state.add_checkpoint(message, {"model": b"weights"}, steps=steps)
        if accuracy is not None:
            state.add_report(message, steps=steps, accuracy=accuracy)
    experiment, trial = determined.get_experiment(1), determined.get_trial(1)
    order = [checkpoint.metadata["steps_completed"] for checkpoint in experiment.list_checkpoints()]
    assert order == [2, 3, 1, 4]
    worst = trial.select_checkpoint(best=True, sort_by="accuracy", smaller_is_better=True)
    assert worst.metadata == {"steps_completed": 1}
    assert trial.select_checkpoint(latest=True).metadata == {"steps_completed": 4}
    assert experiment.top_checkpoint().uuid == trial.select_checkpoint(best=True).uuid
    assert len(experiment.top_n_checkpoints(3)) == 3
    best = determined.get_checkpoint(experiment.top_checkpoint().uuid)
    assert best.training is not None
    assert best.training.validation_metrics == {"accuracy": 0.9}
    assert best.training.trial_id == 1
    assert best.resources == {"model": 7}
    assert [report.metrics for report in best.get_metrics()] == [{"accuracy": 0.9}]
    assert best.download() == f"checkpoints/{best.uuid}"
    assert (tmp_path / "checkpoints" / best.uuid / "model").read_bytes() == b"weights"


@pytest.mark.parametrize("arguments", [(client.CheckpointSortBy.UUID, None), (None, client.OrderBy.ASC)])
def test_a_sort_key_comes_with_its_direction(
    cluster: ScriptedCluster,
    determined: client.Client,
    arguments: tuple[client.CheckpointSortBy | None, client.OrderBy | None],
) -> None:
    cluster.state.add_experiment()
    with pytest.raises(AssertionError, match="must be given together"):
        determined.get_experiment(1).list_checkpoints(*arguments)


def test_metadata_of_a_checkpoint_is_changed(
    cluster: ScriptedCluster, determined: client.Client, tmp_path: Path
) -> None:
    message = cluster.state.add_trial(cluster.state.add_experiment())
    cluster.state.add_checkpoint(message, {"model": b"x"}, steps=1)
    checkpoint = determined.get_trial(1).select_checkpoint(latest=True)
    checkpoint.add_metadata({"good": True, "note": "x"})
    checkpoint.remove_metadata(["note"])
    assert checkpoint.metadata == {"good": True, "steps_completed": 1}
    checkpoint.write_metadata_file(str(tmp_path))
    assert json.loads((tmp_path / "metadata.json").read_text()) == checkpoint.metadata
    with pytest.raises(ValueError, match="at least one glob"):
        checkpoint.remove_files([])
    checkpoint.delete()
    checkpoint.reload()
    assert checkpoint.state is client.CheckpointState.DELETED


def test_the_module_functions_log_in_once(cluster: ScriptedCluster) -> None:
    cluster.state.add_experiment()
    assert client.get_experiment(1).id == 1
    assert client.get_session_username() == "ada"
    with pytest.raises(ValueError, match=r"You can only call login\(\) once"):
        client.login(master=cluster.address)
    client.logout()
    with pytest.warns(UserWarning, match="has no effect"):
        client.login(master=f"http://{cluster.address}", user="grace", noverify=True)
    assert client.get_session_username() == "grace"


def test_older_spellings_of_a_login_are_taken_silently(cluster: ScriptedCluster) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.login(cluster.address, "grace", None)
    assert client.get_session_username() == "grace"


def test_the_public_surface_shows_no_messages_of_the_contract() -> None:
    for name in client.__all__:
        module = getattr(getattr(client, name), "__module__", "")
        assert "_pb2" not in module
        assert module.startswith("resolute.client")
