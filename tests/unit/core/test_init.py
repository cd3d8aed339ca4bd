"""How a context is made and closed."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import resolute
from resolute import core
from resolute.contracts.object_stores.location import BucketStorage
from resolute.core.checkpoint.storage import DirectoryStorage, parse_storage
from resolute.errors import FailedPreconditionError
from resolute.info import ClusterInfo, RendezvousInfo, TrialInfo


def info_of(task_type: str = "TRIAL", *, slots: int = 1, containers: int = 1) -> ClusterInfo:
    return ClusterInfo(
        master_url="http://127.0.0.1:1",
        cluster_id="cluster",
        agent_id="agent",
        slot_ids=list(range(slots)),
        task_id="task",
        allocation_id="allocation",
        session_token="",
        task_type=task_type,
        trial_info=TrialInfo(1, 1, 1, {}, {}, 0, 1) if task_type == "TRIAL" else None,
        rendezvous_info=RendezvousInfo(["127.0.0.1"] * containers, 0, [slots] * containers),
    )


@pytest.fixture(autouse=True)
def off_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_off_cluster_everything_works_without_a_server(tmp_path: Path) -> None:
    with core.init() as context:
        assert context.info is None
        for op in context.searcher.operations():
            context.train.report_training_metrics(steps_completed=op.length, metrics={"loss": 1.0})
            with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint):
                (path / "state").write_text("1")
            assert not context.preempt.should_preempt()
            op.report_completed(1.0)
        with context.checkpoint.restore_path(checkpoint) as path:
            assert (path / "state").read_text() == "1"
        assert (tmp_path / "data" / "resolute" / "checkpoints" / checkpoint / "state").exists()
        context.profiler.on()
        context.profiler.off()
        context.experimental.report_task_using_checkpoint(type("Checkpoint", (), {"uuid": "u"})())


def test_hyperparameters_of_the_trial_replace_those_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    with core.init(hparams={"lr": 0.1, "hidden": 8}) as context:
        assert (context.hparams, context.seed) == ({"lr": 0.1, "hidden": 8}, 0)
    trial = TrialInfo(1, 1, 7, {"lr": 0.5}, {}, 0, 1)
    info = info_of()
    info._trial_info = trial
    context = core.Context(core._dummy_init()._parts, info=info, hparams={"lr": 0.1, "hidden": 8})
    assert (context.hparams, context.seed) == ({"lr": 0.5, "hidden": 8}, 7)
    assert trial.hparams == {"lr": 0.5}
    command = core.Context(core._dummy_init()._parts, info=info_of("COMMAND"))
    assert (command.hparams, command.seed) == ({}, 0)


def test_hyperparameters_that_the_defaults_do_not_name_are_noted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    info = info_of()
    info._trial_info = TrialInfo(1, 1, 7, {"lr": 0.5, "hidden": 8}, {}, 0, 1)
    parts = core._dummy_init()._parts
    core.Context(parts, info=info)
    core.Context(parts, info=info, hparams={"lr": 0.1, "hidden": 4, "own": 1})
    assert not caplog.messages
    core.Context(parts, info=info, hparams={"learning_rate": 0.1, "hidden": 4})
    (message,) = caplog.messages
    assert message.startswith("the hparams given to init lack lr of the config's hyperparameters: see that")


def test_the_latest_checkpoint_is_restored_if_there_is_one() -> None:
    with core.init() as context:
        with context.restore_latest() as path:
            assert path is None
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint):
            (path / "state").write_text("1")
        context.info = info_of()
        context.info._latest_checkpoint = checkpoint
        with context.restore_latest() as path:
            assert path is not None
            assert (path / "state").read_text() == "1"


@pytest.mark.parametrize("storage", ["{}", "file://{}"])
def test_checkpoints_go_where_the_script_says(tmp_path: Path, storage: str) -> None:
    with core.init(checkpoint_storage=storage.format(tmp_path / "mine")) as context:
        with context.checkpoint.store_path() as (_, checkpoint):
            pass
        assert (tmp_path / "mine" / checkpoint / "metadata.json").exists()


@pytest.mark.parametrize(("slots", "containers"), [(2, 1), (1, 2)])
def test_a_multi_slot_trial_needs_a_distributed_context(
    monkeypatch: pytest.MonkeyPatch, slots: int, containers: int
) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: info_of(slots=slots, containers=containers))
    with pytest.raises(ValueError, match="you must provide a valid DistributedContext for a multi-slot task"):
        core.init()


def test_a_task_that_is_no_trial_gets_what_works_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    info = info_of("NOTEBOOK")
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: info)
    with core.init() as context:
        assert context.info is info
        assert isinstance(context.train, core.DummyTrainContext)
        assert isinstance(context.checkpoint, core.DummyCheckpointContext)
        assert not context.preempt.should_preempt()


def test_a_trial_that_no_supervisor_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", info_of)
    with pytest.raises(FailedPreconditionError, match="start it through an experiment"):
        core.init()


@pytest.mark.parametrize(
    ("storage", "parsed"),
    [
        ("/some/path", DirectoryStorage(Path("/some/path"))),
        ("relative", DirectoryStorage(Path.cwd() / "relative")),
        ("file:///some/path", DirectoryStorage(Path("/some/path"))),
        ("s3://bucket", BucketStorage("s3", "bucket")),
        ("s3://bucket/a/b/", BucketStorage("s3", "bucket", prefix="a/b")),
        ("gs://bucket/a", BucketStorage("gcs", "bucket", prefix="a")),
        ({"type": "directory", "container_path": "/some/path"}, DirectoryStorage(Path("/some/path"))),
        (
            {"type": "s3", "bucket": "b", "prefix": "/p/", "endpoint_url": "http://e"},
            BucketStorage("s3", "b", prefix="p", endpoint_url="http://e"),
        ),
        ({"type": "gcs", "bucket": "b"}, BucketStorage("gcs", "b")),
        (
            {"type": "s3", "bucket": "b", "access_key": "a", "secret_key": "s"},
            BucketStorage("s3", "b", access_key="a", secret_key="s"),
        ),
        ({"type": "azure", "container": "c"}, BucketStorage("azure", "c")),
        (
            {"type": "azure", "container": "c", "account_url": "https://a", "credential": "s"},
            BucketStorage("azure", "c", endpoint_url="https://a", secret_key="s"),
        ),
        (
            {"type": "azure", "container": "c", "connection_string": "AccountKey=s"},
            BucketStorage("azure", "c", connection_string="AccountKey=s"),
        ),
    ],
)
def test_storage_is_read(storage: Any, parsed: Any) -> None:
    assert parse_storage(storage) == parsed


@pytest.mark.parametrize(
    ("storage", "error", "message"),
    [
        ("s3://bucket?query", ValueError, "no query, fragment or parameters"),
        ("s3://bucket#fragment", ValueError, "no query, fragment or parameters"),
        ("s3:///prefix", ValueError, "names no bucket"),
        ("ftp://host/path", ValueError, "unknown scheme 'ftp'"),
        ("file://host/path", ValueError, "file:///absolute/path"),
        ({"type": "shared_fs", "host_path": "/tmp"}, ValueError, "shared_fs cannot be given"),
        ({"type": "tape"}, ValueError, "has the type 'tape'"),
        ({}, ValueError, "has the type None"),
        ({"type": "s3"}, ValueError, "needs bucket"),
        ({"type": "s3", "bucket": "b", "prefix": "../a"}, ValueError, "must have no '..'"),
        ("s3://bucket/a/../b", ValueError, "must have no '..'"),
        ({"type": "s3", "bucket": "b", "secret_key": 3}, ValueError, "a text as secret_key, not a int"),
        (
            {"type": "azure", "container": "c", "account_url": "u", "connection_string": "s"},
            ValueError,
            "not both",
        ),
        ({"type": "azure", "container": "c", "credential": "s"}, ValueError, "only beside account_url"),
        ({"type": "azure", "container": "c", "account_url": "https://a?sig=s"}, ValueError, "no token in it"),
        ({"type": "directory", "container_path": 3}, ValueError, "needs container_path"),
        (17, TypeError, "must be a text or a dict, not a int"),
        (Path("/tmp"), TypeError, "must be a text or a dict"),
    ],
)
def test_storage_that_makes_no_sense_is_refused(storage: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        core.init(checkpoint_storage=storage)


def test_support_for_forks_that_makes_workers_hang_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resolute, "get_cluster_info", info_of)
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "1")
    with pytest.raises(FailedPreconditionError):
        core.init()
    assert "GRPC_ENABLE_FORK_SUPPORT is set: forked data loader workers may hang" in caplog.text


def test_refused_hyperparameters_end_the_process_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(SystemExit) as exit_, core.init():
        raise resolute.InvalidHP("the learning rate is absurd")
    assert exit_.value.code == 0
    assert "early exit: INVALID_HP: the learning rate is absurd" in caplog.text


def test_other_errors_are_the_scripts_own() -> None:
    with pytest.raises(KeyError), core.init():
        raise KeyError


def test_a_context_can_be_started_and_closed_by_hand() -> None:
    context = core.init()
    context.start()
    assert not context.preempt.should_preempt()
    context.close()


def test_everything_is_closed_even_if_something_fails() -> None:
    context = core.init()
    closed = []

    class Failing(core.DummyProfilerContext):
        def close(self) -> None:
            raise OSError("cannot close")

    class Closing(core.DummyDistributedContext):
        def close(self) -> None:
            closed.append("distributed")
            super().close()

    context.profiler = Failing()
    context.distributed = Closing()
    context.start()
    with pytest.raises(OSError, match="cannot close"):
        context.close()
    assert closed == ["distributed"]


def test_alerts_reach_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with core.init() as context:
        context.alert(title="Attention", description="loss explodes", level="warn")
        with pytest.raises(ValueError, match="level is 'loud'"):
            context.alert(level="loud")
        context.alert(title="t" * 100_000, description="d" * 100_000, level="warn")
    assert "alert: Attention: loss explodes" in caplog.text
    assert f"alert: {'t' * 200}: {'d' * 3000}\n" in caplog.text


def test_sigusr1_shows_where_the_script_is(capfd: pytest.CaptureFixture[str]) -> None:
    called = []
    before = signal.signal(signal.SIGUSR1, lambda *_: called.append("before"))
    try:
        with core.init():
            os.kill(os.getpid(), signal.SIGUSR1)
        error = capfd.readouterr().err
        assert "Stack of thread MainThread" in error
        assert "test_sigusr1_shows_where_the_script_is" in error
        assert called == ["before"]
        os.kill(os.getpid(), signal.SIGUSR1)
        assert called == ["before", "before"]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_documented_names_are_there() -> None:
    names = """
        Context init CheckpointContext DummyCheckpointContext DownloadMode DistributedContext
        DummyDistributedContext PreemptContext DummyPreemptContext PreemptMode SearcherContext
        DummySearcherContext SearcherOperation SearcherMode Unit TrainContext DummyTrainContext
        EarlyExitReason TensorboardMode ProfilerContext DummyProfilerContext ExperimentalCoreContext
        _dummy_init
    """
    assert not [name for name in names.split() if not hasattr(core, name)]


def test_the_core_api_needs_neither_grpc_nor_torch() -> None:
    script = """
import sys, resolute.core
assert not {"grpc", "torch", "numpy", "google.protobuf"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
