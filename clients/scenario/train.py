"""A short training without a framework: three steps, a validation, a checkpoint."""

import resolute
from resolute import core

rate = resolute.get_cluster_info().trial.hparams["rate"]
with core.init() as context:
    for operation in context.searcher.operations():
        for step in range(1, operation.length + 1):
            context.train.report_training_metrics(steps_completed=step, metrics={"loss": rate / step})
            print(f"step {step}", flush=True)
        context.train.report_validation_metrics(steps_completed=operation.length, metrics={"loss": rate})
        with context.checkpoint.store_path({"steps_completed": operation.length}) as (path, _):
            (path / "weights").mkdir()
            (path / "weights" / "rate").write_text(str(rate))
            (path / "empty").write_bytes(b"")
        operation.report_completed(rate)
