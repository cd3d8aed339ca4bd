"""The first public Core API: `latest_batch`, free metadata, upload and download of directories."""

import os
import tempfile

import determined as det

info = det.get_cluster_info()
distributed = det.core.DistributedContext.from_torch_distributed()
with det.core.init(distributed=distributed) as core_context:
    assert core_context.searcher.get_configured_units() == det.core.Unit.BATCHES
    first = 0
    if info.latest_checkpoint:
        first = core_context.checkpoint.get_metadata(info.latest_checkpoint)["latest_batch"]
    for op in core_context.searcher.operations(det.core.SearcherMode.ChiefOnly):
        for batch in range(first, op.length):
            core_context.train.report_training_metrics(
                latest_batch=batch + 1, metrics={"loss": 1 / (batch + 1)}
            )
            core_context.train.set_status("training")
        core_context.train.report_validation_metrics(latest_batch=op.length, metrics={"loss": 0.25})
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "weights"), "w") as file:
                file.write("w")
            uuid = core_context.checkpoint.upload(
                directory, {"latest_batch": op.length, "trial_id": info.trial.trial_id}
            )
        op.report_completed(0.25)
    with tempfile.TemporaryDirectory() as directory:
        core_context.checkpoint.download(uuid, directory)
        assert sorted(os.listdir(directory)) == ["metadata.json", "weights"]
    assert core_context.train.get_experiment_best_validation() == 0.25
