"""The Core API against the real services."""

import json
import logging
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.clusters.trial_cluster import Trial

import resolute
from resolute import core
from resolute.api.checkpoints.v1 import checkpoint_pb2 as checkpoint_types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.run.early_exit import EarlyExit
from resolute.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, RunSupersededError
from resolute.rpc.channel import open_channel
from resolute.trial_errors import CheckpointNotFound


def fence(trial: Trial, min_run: int) -> None:
    channel = open_channel(trial.services.address, token=trial.services.running.service_token)
    CheckpointsServiceStub(channel).FenceTrial(
        checkpoints.FenceTrialRequest(trial_id=trial.trial_id, min_run=min_run)
    )
    channel.close()


def test_a_script_trains_reports_checkpoints_and_completes(trial: Trial) -> None:
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        lengths = []
        for op in context.searcher.operations():
            lengths.append(op.length)
            for step in range(1, op.length + 1):
                context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
                op.report_progress(step)
                assert not context.preempt.should_preempt()
            context.train.report_validation_metrics(
                steps_completed=op.length, metrics={"loss": 0.25, "note": "x"}
            )
            with context.checkpoint.store_path({"steps_completed": op.length, "my": [1, 2.5]}) as (
                path,
                checkpoint,
            ):
                (path / "state").write_text("42")
            op.report_completed(0.25)
        assert context.train.get_experiment_best_validation() == 0.25
        assert context.train._get_last_validation() == 8
        metadata = context.checkpoint.get_metadata(checkpoint)
        with context.checkpoint.restore_path(checkpoint) as path:
            assert (path / "state").read_text() == "42"

    assert lengths == [8]
    assert metadata == {"steps_completed": 8, "latest_batch": 8, "my": [1, 2.5]}
    assert trial.series("training", "loss") == [(step, 1 / step) for step in range(1, 9)]
    assert trial.series("validation", "loss") == [(8, 0.25)]
    assert trial.flags.acknowledged
    assert not trial.directory.early_exit_file.exists()


def test_a_length_of_zero_is_one_operation_of_length_zero(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.time_metric = "batches"  # as the experiments service starts a trial that ends by itself
    trial.config = {"searcher": {"name": "single", "max_length": 0}}
    trial.enter(monkeypatch)
    lengths = []
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        for op in context.searcher.operations():
            lengths.append(op.length)
            op.report_progress(op.length)
            op.report_completed(0.5)
        assert context.searcher.get_configured_units() is None
    assert lengths == [0]


def test_before_any_validation_there_is_no_best(trial: Trial) -> None:
    with core.init() as context:
        assert context.train.get_experiment_best_validation() is None
        assert context.train._get_last_validation() is None


def test_the_signal_of_the_supervisor_is_seen_and_acknowledged(trial: Trial) -> None:
    with core.init() as context:
        assert not context.preempt.should_preempt()
        trial.flags.set_signal(revision=2, preempt=True)
        assert context.preempt.should_preempt()
    assert trial.flags.acknowledged_revision == 2


def test_a_checkpoint_is_visible_only_once_its_reports_have_arrived(trial: Trial) -> None:
    trial.sender.stop()
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        done = threading.Event()

        def store() -> None:
            with context.checkpoint.store_path({"steps_completed": 1}):
                pass
            done.set()

        thread = threading.Thread(target=store)
        thread.start()
        assert not done.wait(0.5)
        trial.__post_init__()
        assert done.wait(60)
        thread.join()


def test_metadata_and_status_are_kept(trial: Trial) -> None:
    with core.init() as context:
        context.train.set_status("training")
        assert context.train.get_metadata() == {}
        assert context.train.set_metadata({"a": {"b": 1}}) == {"a": {"b": 1}}
        assert context.train.get_metadata() == {"a": {"b": 1}}
    assert trial.services.notes.statuses == ["training"]


def test_a_conflicting_value_raises_nothing_and_the_last_counts(trial: Trial) -> None:
    with core.init() as context:
        context.train.report_metrics("other", 1, {"a": 1.0})
        context.train.report_metrics("other", 1, {"b": 2.0})
        context.train.report_metrics("other", 1, {"a": 1.0})
        context.train.flush(timeout=20)
        context.train.report_metrics("other", 1, {"a": 3.0})
        context.train.flush(timeout=20)
        context.train.report_metrics("other", 2, {"a": 4.0})
        context.train.flush(timeout=20)
    assert trial.series("other", "a") == [(1, 3.0), (2, 4.0)]
    assert trial.series("other", "b") == [(1, 2.0)]


def test_a_strict_script_hears_of_a_refusal_in_the_call(trial: Trial) -> None:
    with core.init(strictness=core.Strictness.STRICT) as context:
        context.train.report_metrics("other", 1, {"a": 1.0})
        with pytest.raises(InvalidArgumentError, match=r"refused a report: .* 'a' was reported as 1\.0"):
            context.train.report_metrics("other", 1, {"a": 3.0})
        context.train.report_metrics("other", 2, {"a": 3.0})
    assert trial.series("other", "a") == [(1, 3.0), (2, 3.0)]


def test_training_goes_on_while_the_services_are_away(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        op = next(context.searcher.operations())
        trial.services.down()
        for step in range(1, 501):
            context.train.report_training_metrics(step, {"loss": 1.0})
            context.preempt.should_preempt()
        context.train.set_status("training")
        context.train.set_status("still training")
        timer = threading.Timer(1.0, trial.services.up)
        timer.start()
        op.report_completed(0.5)
        with context.checkpoint.store_path({"steps_completed": 500}) as (_, checkpoint):
            pass
        assert context.checkpoint.get_metadata(checkpoint)["steps_completed"] == 500
        timer.join()
    assert len(trial.series("training", "loss")) == 500


def test_a_failed_block_leaves_no_checkpoint_and_no_files(trial: Trial) -> None:
    with core.init() as context:
        with (
            pytest.raises(KeyError),
            context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint),
        ):
            raise KeyError
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.get_metadata(checkpoint)
        deadline = time.monotonic() + 20
        while path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not path.exists()


def test_a_superseded_run_cannot_commit_but_its_reports_are_history(trial: Trial) -> None:
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        fence(trial, min_run=2)
        context.train.report_training_metrics(1, {"loss": 1.0})
        with pytest.raises(RunSupersededError), context.checkpoint.store_path({"steps_completed": 1}):
            pass
        context.train.flush(timeout=20)
    assert trial.series("training", "loss") == [(1, 1.0)]


def test_a_damaged_checkpoint_is_not_restored(trial: Trial) -> None:
    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint):
            (path / "state").write_text("42")
        committed = path.parent / "state"
        committed.chmod(0o600)
        committed.write_text("43")
        with (
            pytest.raises(DataLossError, match="state has another content"),
            context.checkpoint.restore_path(checkpoint),
        ):
            pass


def test_a_deleted_checkpoint_is_gone(trial: Trial, tmp_path: Path) -> None:
    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}) as (_, checkpoint):
            pass
        context.checkpoint.delete(checkpoint)
        context.checkpoint.delete(checkpoint)
        with pytest.raises(CheckpointNotFound):
            context.checkpoint.download(checkpoint, tmp_path / "back")


def test_steps_are_mandatory_in_metadata(trial: Trial, tmp_path: Path) -> None:
    with core.init() as context:
        (tmp_path / "model").mkdir()
        with pytest.raises(ValueError, match="must contain 'steps_completed'"):
            context.checkpoint.upload(tmp_path / "model", {"other": 1})
        with pytest.raises(ValueError, match="a whole number was expected"):
            context.checkpoint.upload(tmp_path / "model", {"steps_completed": "many"})
        checkpoint = context.checkpoint.upload(tmp_path / "model", {"latest_batch": 4, "trial_id": 12})
        assert context.checkpoint.get_metadata(checkpoint) == {
            "latest_batch": 4,
            "steps_completed": 4,
            "trial_id": 12,
        }


def test_checkpoints_go_where_the_script_says(trial: Trial, tmp_path: Path) -> None:
    with (
        core.init(checkpoint_storage=str(tmp_path / "mine")) as context,
        context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint),
    ):
        assert path.is_relative_to(tmp_path / "mine" / checkpoint)
    assert (tmp_path / "mine" / checkpoint).is_dir()
    with core.init() as context, context.checkpoint.restore_path(checkpoint) as path:
        assert path.name == checkpoint


def test_refused_hyperparameters_reach_the_supervisor(trial: Trial) -> None:
    with pytest.raises(SystemExit) as exit_, core.init() as context:
        _refuse(context)
    assert exit_.value.code == 0
    assert EarlyExit.read(trial.directory.early_exit_file) == EarlyExit("INVALID_HP", "too large")
    assert trial.sender.drain(20)
    assert trial.series("training", "loss") == [(1, 1.0)]


def _refuse(context: core.Context) -> None:
    context.train.report_training_metrics(1, {"loss": 1.0})
    raise resolute.InvalidHP("too large")


def test_the_first_reason_of_an_early_exit_counts(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    with core.init() as context:
        context.train.report_early_exit(core.EarlyExitReason.USER_REQUESTED_STOP)
        context.train.report_early_exit(core.EarlyExitReason.INVALID_HP)
    assert EarlyExit.read(trial.directory.early_exit_file) == EarlyExit("USER_REQUESTED_STOP")
    assert "INVALID_HP is ignored" in caplog.text


def test_a_trial_that_has_done_its_operation_gets_no_other(trial: Trial) -> None:
    with core.init() as context:
        next(context.searcher.operations()).report_completed(1.0)
    with core.init() as context:
        assert list(context.searcher.operations()) == []


def test_an_operation_that_was_completed_otherwise_is_an_error(trial: Trial) -> None:
    with core.init() as context:
        op = next(context.searcher.operations())
        next(context.searcher.operations()).report_completed(1.0)
        op.report_completed(1.0)
        again = core.SearcherOperation(context.searcher._source, length=8, is_chief=True)
        with pytest.raises(FailedPreconditionError):
            again.report_completed(2.0)


def test_a_share_of_the_trial_is_told_in_the_units_of_its_search(trial: Trial) -> None:
    with core.init() as context:
        context.train.report_progress(0.5)
    channel = open_channel(trial.services.address, token=trial.services.running.user_token)
    request = searcher.GetOperationRequest(trial_id=trial.trial_id)
    operation = SearcherServiceStub(channel).GetOperation(request).operation
    channel.close()
    assert operation.progress == 4


def test_units_come_from_the_config(trial: Trial) -> None:
    with core.init() as context:
        assert context.searcher.get_configured_units() is core.Unit.BATCHES


@pytest.mark.parametrize("section", [{"max_length": {"batches": 5}}, {}])
def test_a_search_that_validations_drive_gives_at_most_one_local_operation(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, section: dict[str, object]
) -> None:
    trial.time_metric = "batches"
    trial.config = {"searcher": section}
    trial.enter(monkeypatch)
    with core.init() as context:
        if not section:
            with pytest.raises(ValueError, match=r"no searcher\.max_length"):
                context.searcher.operations()
            return
        (op,) = [_done(op) for op in context.searcher.operations()]
        assert op.length == 5
        assert not trial.flags.acknowledged


def _done(op: core.SearcherOperation) -> core.SearcherOperation:
    op.report_progress(3)
    op.report_completed(1.0)
    return op


def test_events_for_tensorboard_lie_beside_the_checkpoints(trial: Trial) -> None:
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 1}):
            pass
    kept = trial.path / "checkpoints" / "cluster" / "tensorboard" / "experiment" / "7" / "trial" / "12"
    assert [path.name.startswith("events.out.tfevents") for path in kept.iterdir()] == [True]


def test_pictures_in_files_for_tensorboard_become_media(trial: Trial) -> None:
    writers = pytest.importorskip("torch.utils.tensorboard")
    with core.init() as context:
        with writers.SummaryWriter(context.train.get_tensorboard_path()) as writer:
            writer.add_image("sample", np.zeros((3, 4, 4), dtype=np.uint8), 5)
        assert not list(trial.path.rglob("*.media"))
    [spool] = trial.path.rglob("*.media")
    assert b"sample" in spool.read_bytes()
    assert b"\x89PNG" in spool.read_bytes()


def test_metadata_lie_beside_the_files(trial: Trial) -> None:
    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}) as (_, checkpoint):
            pass
        with context.checkpoint.restore_path(checkpoint) as path:
            assert json.loads((path / "metadata.json").read_text()) == {"steps_completed": 1}


def test_the_registry_knows_every_file(trial: Trial) -> None:
    with core.init() as context, context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint):
        (path / "sub").mkdir()
        (path / "sub" / "state").write_text("42")
    channel = open_channel(trial.services.address, token=trial.services.running.user_token)
    found = CheckpointsServiceStub(channel).GetCheckpoint(
        checkpoints.GetCheckpointRequest(checkpoint_id=checkpoint)
    )
    channel.close()
    assert found.checkpoint.state == checkpoint_types.CHECKPOINT_STATE_COMPLETED
    assert {file.path: file.size for file in found.checkpoint.files} == {
        "metadata.json": 27,
        "sub/": 0,
        "sub/state": 2,
    }
