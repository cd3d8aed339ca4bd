"""Names of older and newer releases of the documented API, each with what it does."""

from __future__ import annotations

import importlib
import pickle
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from determined import errors, search_space, util
from determined.horovod import _Horovod
from resolute import core, core_v2
from resolute.core.unmanaged.config import DefaultConfig, UnmanagedConfig
from resolute.tensorboard import get_base_path


def test_a_constant_is_named_by_its_value() -> None:
    assert search_space.Constant(value=3) == search_space.Constant(3) == {"type": "const", "val": 3}


def test_ranges_are_named_by_their_bounds() -> None:
    between = search_space.Double(minval=0.1, maxval=0.5, count=4)
    assert between == {"type": "double", "minval": 0.1, "maxval": 0.5, "count": 4}


def test_parts_of_the_context_are_context_managers() -> None:
    with core.init() as context:
        with context.preempt as preempt:
            assert preempt.should_preempt() is False
        with context.searcher as searcher:
            assert [operation.length for operation in _completed(searcher)] == [1]
        with context.checkpoint as checkpoint:
            assert checkpoint is context.checkpoint


def _completed(searcher: core.SearcherContext) -> Any:
    for operation in searcher.operations():
        yield operation
        operation.report_completed(0.5)


def test_a_preempt_context_of_ones_own_is_started_by_its_with_statement() -> None:
    context = core.DummyPreemptContext(core.DummyDistributedContext())
    with pytest.raises(RuntimeError, match=r"cannot call.*should_preempt.*before.*start"):
        context.should_preempt()
    with context:
        assert context.should_preempt() is False


def test_mistakes_of_users_pass_through_handlers_of_exceptions() -> None:
    for error, text in (
        (errors.InvalidDataTypeException(list, "no"), "Invalid data type (<class 'list'>): no"),
        (errors.InvalidConfigurationException({"a": 1}, "no"), "Invalid configuration ({'a': 1}): no"),
        (errors.InvalidModelException("no"), "no"),
    ):
        assert isinstance(error, errors.InvalidExperimentException)
        assert not isinstance(error, Exception)
        assert str(error) == text


def test_errors_of_downloads_and_checkpoints_are_exceptions() -> None:
    assert issubclass(errors.ProxiedDownloadFailed, Exception)
    assert issubclass(errors.MultipleDownloadsFailed, Exception)
    assert issubclass(errors.EnterpriseOnlyError, Exception)
    assert issubclass(errors.InvalidCheckpointException, RuntimeError), "as torch raises for a mismatch"
    assert str(errors.InvalidCheckpointException()) == "Invalid checkpoint."
    copied = pickle.loads(pickle.dumps(errors.InvalidCheckpointException("no model in it")))
    assert str(copied) == "no model in it"


def test_one_config_says_what_two_said_and_those_warn() -> None:
    with pytest.warns(FutureWarning, match=r"DefaultConfig is deprecated: pass core_v2\.init\(config="):
        defaults = DefaultConfig("n", {"lr": 1}, labels=["l"], workspace="w")
    with pytest.warns(FutureWarning, match="UnmanagedConfig is deprecated"):
        unmanaged = UnmanagedConfig("other", "p", external_trial_id="t")
    both = defaults.placed_by(unmanaged)
    assert both.fields() == {"labels": ["l"], "workspace": "w", "project": "p"}
    assert (both.name, both.hparams, both.external_trial_id) == ("n", {"lr": 1}, "t")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"external_trial_id": "t"}, "set external_experiment_id too"),
        ({"external_experiment_id": 5}, "external_experiment_id is 5; a text"),
        ({"external_experiment_id": "e", "external_trial_id": 7}, "external_trial_id is 7; a text"),
    ],
)
def test_names_across_runs_are_texts_and_of_an_experiment(names: dict[str, Any], message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        core_v2.init(config=core_v2.Config(**names))


def test_before_there_is_a_trial_nothing_is_known_of_it() -> None:
    assert core_v2.info is None
    with pytest.raises(RuntimeError, match=r"call core_v2\.init\(\) first"):
        core_v2.train.report_training_metrics(1, {"loss": 1.0})


def test_horovod_is_used_for_one_framework() -> None:
    hvd = _Horovod()
    with pytest.raises(RuntimeError, match=r"must call det\.horovod\.hvd\.require_horovod_type"):
        hvd.init()
    hvd.require_horovod_type("torch", "I train with PyTorch")
    hvd.require_horovod_type("torch", "another reason")
    with pytest.raises(ValueError, match=r"because mine.*before because I train with PyTorch"):
        hvd.require_horovod_type("tensorflow", "mine")
    with pytest.raises(ValueError, match="one of torch, tensorflow"):
        hvd.require_horovod_type("jax", "it is new")


def test_horovod_that_is_missing_says_so_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "horovod", None)
    hvd = _Horovod()
    hvd.require_horovod_type("torch", "I train with PyTorch")
    with pytest.raises(ImportError, match=r"Horovod could not be imported for torch"):
        hvd.init()


class Blob:
    """Fails some times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def download_as_bytes(self) -> bytes:
        self.failures -= 1
        if self.failures >= 0:
            raise OSError("away")
        return b"data"


def test_a_blob_is_read_again_until_it_is_there() -> None:
    random.seed(7)
    before = random.getstate()
    assert util.download_gcs_blob_with_backoff(Blob(2), max_backoff=0) == b"data"
    assert random.getstate() == before
    with pytest.raises(RuntimeError, match="Max retries exceeded"):
        util.download_gcs_blob_with_backoff(Blob(9), n_retries=2, max_backoff=0)
    with pytest.raises(TypeError, match="Blob was expected"):
        util.download_gcs_blob_with_backoff("blob")


def test_small_functions_for_scripts() -> None:
    assert util.filter_duplicates([1, 2, 1, 3, 2, 1]) == [1, 2]
    assert [util.is_numerical_scalar(value) for value in (1, 2.0, True, "1", [1])] == [
        True,
        True,
        False,
        False,
        False,
    ]

    def function(first: int, second: int = 2) -> None: ...

    assert util.has_param(function, "second")
    assert not util.has_param(function, "third")
    assert util.has_param(function, "renamed", 1)
    assert not util.has_param(function, "renamed", 2)
    assert util.get_member_func([], "append") is not None
    assert util.get_member_func([], "nothing") is None
    assert util.make_timing_log("trained", 2.0, 100, 10).startswith("trained: 100 records in 2.0s (50.0")


@pytest.mark.parametrize("name", ["pytorch", "tensorflow"])
def test_older_writers_write_events(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    module = importlib.import_module(f"resolute.tensorboard.metric_writers.{name}")
    if name == "pytorch":
        with pytest.warns(FutureWarning, match=r"get_tensorboard_writer\(\)"):
            writer = module.TorchWriter()
    else:
        writer = module.TFWriter()
    writer.add_scalar("loss", 0.5, 1)
    writer.reset()
    writer.add_scalar("loss", 0.25, 2)
    writer.flush()
    events = EventAccumulator(str(get_base_path({})))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 0.5), (2, 0.25)]
    writer.writer.close()


def test_a_function_is_a_reducer_by_its_older_name() -> None:
    pytest.importorskip("torch")
    from determined import pytorch

    reducer = pytorch._SimpleReducer(sum)
    reducer.update(1)
    reducer.update(2)
    assert reducer.cross_slot_reduce([reducer.per_slot_reduce(), [4]]) == 7


def test_the_client_is_found_where_older_releases_had_it() -> None:
    from determined.experimental import client, metrics

    older = importlib.import_module("determined.common.experimental.checkpoint")
    assert older.Checkpoint is client.Checkpoint
    assert metrics.TrialMetrics is client.TrialMetrics


def test_parameters_are_drawn_again() -> None:
    torch = pytest.importorskip("torch")
    from resolute import pytorch

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    before = model[0].weight.clone()
    pytorch.reset_parameters(model)
    assert not torch.equal(before, model[0].weight)


def test_the_default_device_is_that_of_the_process() -> None:
    torch = pytest.importorskip("torch")
    from resolute.pytorch.experimental import get_default_device

    with core.init() as context:
        found = get_default_device(context)
    assert found == torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
