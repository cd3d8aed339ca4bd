"""A trial is promoted to another cluster by calls that are cut short, repeated, and refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.clusters.other_clusters import other_clusters, services_of
from support.services.in_process import Running
from support.waiting import wait_until

from resolute.client.schema.states import CheckpointState, RunOutcome, TrialState
from resolute.client.services import Services
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.run.exit_record import ExitRecord
from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.files.record import Record
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.remote.registry import RemoteRegistry, parse_connection_storage
from resolute.core.remote.session import Session as RunSession
from resolute.core.reporting.offline import FileReporter
from resolute.core.unmanaged.recorded_checkpoints import RecordedCheckpoints
from resolute.core.unmanaged.sync import sync
from resolute.errors import FailedPreconditionError, InvalidConfigError, PermissionDeniedError
from resolute.promotion.attempt import Attempt
from resolute.promotion.promote import promote
from resolute.runtime.connection import Connection
from resolute.runtime.offline_run import OfflineRun
from resolute_serving.context import Role

FAILURE = "the disk was full"
COMMAND = ("entrypoint=python3 train.py",)
"""Lets a run outside of a cluster go on in one."""


@dataclass(frozen=True)
class Clusters:
    """Two clusters, and the directory of promotions."""

    source: Services
    target: Services
    viewer: Services
    """The target for someone who may not run anything there."""
    directory: Path

    def promote(self, trial: int, *, target: Services | None = None, **options: Any) -> Any:
        return promote(self.source, target or self.target, str(trial), directory=self.directory, **options)

    def attempt(self) -> tuple[Path, Attempt]:
        """The one promotion that was begun."""
        (path,) = self.directory.glob("*/promotion.json")
        attempt = Attempt.load(path.parent)
        assert attempt is not None
        return path.parent, attempt


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Running]]:
    home = tmp_path_factory.mktemp("clusters")
    with other_clusters(home / "source", home / "target") as running:
        yield running


@pytest.fixture
def clusters(platforms: list[Running], tmp_path: Path) -> Iterator[Clusters]:
    source, target = platforms
    with (
        services_of(source) as here,
        services_of(target) as there,
        services_of(target, role=Role.VIEWER) as viewer,
    ):
        yield Clusters(here, there, viewer, directory=tmp_path / "promotions")


def recorded_run(tmp_path: Path, **known: Any) -> OfflineRun:
    """A run outside of a cluster that reported, and is not said to have ended."""
    run_id = str(uuid.uuid4())
    run = OfflineRun.create(tmp_path / "runs", run_id=run_id, name="laptop", now=1000.0, **known)
    with closing(FileReporter.of_rank(run.directory, 0)) as reporter:
        reporter.report("training", 3, {"loss": 0.5})
    return run


def with_checkpoint(run: OfflineRun, *, steps: int) -> OfflineRun:
    """The run with a checkpoint that it recorded."""
    store, checkpoint_id = DirectoryStore(RecordedCheckpoints(run.directory).base), str(uuid.uuid4())
    folder = RecordedCheckpoints(run.directory).base / checkpoint_id / "data"
    folder.mkdir(parents=True)
    content = f"weights of step {steps}"
    (folder / "weights").write_text(content)
    files = (FileEntry("data/", 0, ""), FileEntry("data/weights", len(content), ""))
    record = Record(finished=True, files=files, metadata={"steps_completed": steps, "latest_batch": steps})
    store.write_record(checkpoint_id, record.written())
    return run


def failed_trial(clusters: Clusters, tmp_path: Path, **known: Any) -> int:
    """A trial of the source with a checkpoint, which failed."""
    run = with_checkpoint(recorded_run(tmp_path, **known), steps=3)
    ExitRecord(exit_code=1, failure=FAILURE, end_time=1060.0).write(run.exit_file)
    return sync(clusters.source, run, timeout=120.0).trial.id


def test_a_history_has_the_outcome_of_its_trial_and_is_copied_again_only_where_it_was_removed(
    clusters: Clusters, tmp_path: Path
) -> None:
    number = failed_trial(clusters, tmp_path)
    first = clusters.promote(number)
    kept = clusters.target.trials.get(first.trial)
    assert (kept.state, kept.runs[-1].outcome) == (TrialState.ERROR, RunOutcome.FAILED)
    assert kept.runs[-1].failure == FAILURE
    assert [report.metrics for report in clusters.target.metrics.reports(kept)] == [{"loss": 0.5}]
    assert clusters.target.checkpoints.get(first.checkpoint).metadata["promoted_from"]["trial"] == number
    assert clusters.promote(number) == first
    clusters.target.checkpoints.delete([first.checkpoint])
    again = clusters.promote(number)
    assert again.checkpoint != first.checkpoint
    assert again.trial != first.trial
    (original,) = clusters.source.checkpoints.of_trial(clusters.source.trials.get(number).uuid)
    assert set(original.metadata["promoted_to"]) == {first.checkpoint, again.checkpoint}
    assert original.metadata["promoted_to"][again.checkpoint]["trial"] == again.trial


def test_a_promotion_that_was_cut_short_goes_on_with_its_checkpoint(
    clusters: Clusters, tmp_path: Path
) -> None:
    number = failed_trial(clusters, tmp_path)
    with pytest.raises(PermissionDeniedError):
        clusters.promote(number, target=clusters.viewer)
    place, attempt = clusters.attempt()
    # Meanwhile the original is removed, and an upload of the copy was begun and given up.
    clusters.source.checkpoints.delete([attempt.checkpoint])
    give_up_upload(clusters.target, OfflineRun.load(place / "run"), attempt.copy_id)
    done = clusters.promote(number)
    assert done.checkpoint != attempt.copy_id
    copy = clusters.target.checkpoints.get(done.checkpoint)
    weights = b"".join(clusters.target.checkpoints.read(done.checkpoint, "data/weights"))
    assert (weights, copy.steps_completed) == (b"weights of step 3", 3)
    assert clusters.target.trials.get(done.trial).run == 1
    assert "cannot name its copy" in done.warnings[0]
    assert sorted(path.name for path in place.iterdir()) == ["lock", "promotion.json"]


def give_up_upload(target: Services, run: OfflineRun, checkpoint_id: str) -> None:
    begun = target.trials.begin(run)
    token = run.directory / "token-of-the-test"
    write_atomically(token, begun.token)
    connection = Connection(
        address=target.session.endpoint.address,
        experiment_id=begun.trial.experiment_uuid,
        trial_id=begun.trial.uuid,
        run=begun.run,
        token_path=str(token),
        storage=begun.storage,
        unmanaged=True,
    )
    with closing(RunSession(connection, tls=target.session.endpoint.tls, outage_timeout=60.0)) as session:
        registry = RemoteRegistry(session, storage=parse_connection_storage(begun.storage))
        registry.begin(checkpoint_id)
        registry.abort(checkpoint_id)


def test_a_running_trial_and_a_wrong_change_of_the_config_are_refused_before_anything_is_copied(
    clusters: Clusters, tmp_path: Path
) -> None:
    running = clusters.source.trials.begin(recorded_run(tmp_path)).trial
    with pytest.raises(FailedPreconditionError, match="is RUNNING"):
        clusters.promote(running.id)
    ended = failed_trial(clusters, tmp_path)
    with pytest.raises(InvalidConfigError, match="wrong"):
        clusters.promote(ended, overrides=("wrong",))
    assert not clusters.directory.exists()


def test_a_repeated_promotion_finds_its_experiment_whatever_became_of_the_request_and_the_original(
    clusters: Clusters, tmp_path: Path
) -> None:
    number = failed_trial(clusters, tmp_path)
    first = clusters.promote(number, overrides=COMMAND, paused=True)
    clusters.source.experiments.update(clusters.source.trials.get(number).experiment_uuid, labels=["edited"])
    assert clusters.promote(number, overrides=COMMAND, paused=True) == first
    # As after a day, when the cluster knows the request no more.
    place, attempt = clusters.attempt()
    request = attempt.request(COMMAND)
    assert request is not None
    forgotten = replace(request, request_id=str(uuid.uuid4()))
    attempt.with_request(COMMAND, forgotten).save(place)
    assert clusters.promote(number, overrides=COMMAND, paused=True) == first
    # As after a call that was cut short before it heard of the experiment.
    attempt.with_request(COMMAND, replace(request, experiment="", warnings=[])).save(place)
    assert clusters.promote(number, overrides=COMMAND, paused=True) == first
    clusters.target.experiments.kill(request.experiment)
    wait_until(
        lambda: clusters.target.experiments.get(request.experiment).state.is_terminal,
        what="the experiment's end",
    )
    clusters.target.experiments.delete(request.experiment)
    other = clusters.promote(number, overrides=COMMAND, paused=True)
    assert replace(other, experiment=first.experiment) == first
    assert other.experiment != first.experiment


def test_a_trial_of_a_search_by_time_goes_on_with_its_own_hyperparameters(
    clusters: Clusters, tmp_path: Path
) -> None:
    hparams = {"opt": {"type": "adam", "lr": 1}, "odd": {"type": "const", "val": 1}, "lr": 0.1}
    timed = {
        "name": "adaptive_asha",
        "metric": "loss",
        "smaller_is_better": False,
        "max_trials": 4,
        "max_time": 9,
        "time_metric": "batches",
    }
    number = failed_trial(clusters, tmp_path, hparams=hparams, config={"searcher": timed})
    done = clusters.promote(number, overrides=COMMAND, paused=True)
    config = clusters.target.experiments.get(done.experiment).config or {}
    assert config["hyperparameters"] == {
        name: {"type": "const", "val": value} for name, value in hparams.items()
    }
    expected = {"name": "single", "smaller_is_better": False, "source_checkpoint_uuid": done.checkpoint}
    assert expected.items() <= config["searcher"].items()
    assert not {"max_trials", "max_time", "time_metric"} & config["searcher"].keys()


def test_a_config_that_the_other_cluster_refuses_is_reported_before_anything_is_copied(
    clusters: Clusters, tmp_path: Path
) -> None:
    number = failed_trial(clusters, tmp_path)
    before = [one.uuid for one in clusters.target.experiments.list()]
    with pytest.raises(InvalidConfigError, match=r"searcher\.max_trials"):
        clusters.promote(number, overrides=(*COMMAND, "searcher.max_trials=4"))
    assert [one.uuid for one in clusters.target.experiments.list()] == before
    assert [path.name for path in clusters.directory.glob("*/*")] == ["lock"]


@pytest.mark.parametrize("steps", range(4))
def test_a_copy_whose_uuid_was_being_changed_is_sent_once(
    clusters: Clusters, tmp_path: Path, steps: int
) -> None:
    number = failed_trial(clusters, tmp_path)
    with pytest.raises(PermissionDeniedError):
        clusters.promote(number, target=clusters.viewer)
    place, attempt = clusters.attempt()
    run = OfflineRun.load(place / "run")
    give_up_upload(clusters.target, run, attempt.copy_id)
    # What is left of the checkpoint is the copy.
    clusters.source.checkpoints.delete([attempt.checkpoint])
    renamed = replace(attempt, copy_id=str(uuid.uuid4()), renamed_from=attempt.copy_id).save(place)
    base = RecordedCheckpoints(run.directory).base
    store = DirectoryStore(base)
    record = store.record(attempt.copy_id)
    assert record is not None
    if steps >= 1:
        store.write_record(renamed.copy_id, record)
    if steps >= 2:
        (base / attempt.copy_id).rename(base / renamed.copy_id)
    if steps >= 3:
        store.delete_record(attempt.copy_id)
    done = clusters.promote(number)
    assert done.checkpoint == renamed.copy_id
    weights = b"".join(clusters.target.checkpoints.read(done.checkpoint, "data/weights"))
    assert weights == b"weights of step 3"
    copies = clusters.target.checkpoints.of_trial(clusters.target.trials.get(done.trial).uuid)
    assert [one.uuid for one in copies if one.state is CheckpointState.COMPLETED] == [done.checkpoint]
