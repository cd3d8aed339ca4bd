"""determined.tensorboard: its writers, paths and manager."""

import pathlib
import tempfile

import determined as det
from determined import tensorboard
from determined.tensorboard import util
from determined.tensorboard.metric_writers.pytorch import TorchWriter

if __name__ == "__main__":
    info = det.get_cluster_info()
    writer = TorchWriter()
    writer.writer.add_scalar("mine", 1.0, 1)
    writer.add_scalar("theirs", 2.0, 1)
    writer.flush()
    assert list(tensorboard.get_base_path({}).glob("*tfevents*"))
    batches = tensorboard.BatchMetricWriter(tensorboard.get_metric_writer())
    batches.on_train_step_end(2, {"loss": 0.5}, [{"loss": 0.6}, {"loss": 0.4}])
    batches.on_validation_step_end(2, {"loss": 0.3})

    host_path = tempfile.mkdtemp()
    manager = tensorboard.build(
        info.cluster_id,
        str(info.trial.experiment_id),
        str(info.trial.trial_id),
        {"type": "shared_fs", "host_path": host_path},
        async_upload=False,
    )
    with manager:
        manager.sync()
    synced = tensorboard.get_sync_path(
        info.cluster_id, str(info.trial.experiment_id), str(info.trial.trial_id)
    )
    assert list((pathlib.Path(host_path) / synced).rglob("*tfevents*")), host_path
    manager.delete()
    assert not list(pathlib.Path(host_path).rglob("*tfevents*"))
    assert util.get_rank_aware_path(pathlib.Path("a/host.xplane.pb"), 3) == pathlib.Path("a/host#3.xplane.pb")
    with det.core.init() as core_context:
        core_context.train.report_validation_metrics(1, {"loss": 0.0})
