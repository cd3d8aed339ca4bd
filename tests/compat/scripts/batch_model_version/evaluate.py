"""Batch inference whose metrics belong to a version of a model in the registry."""

import torch

import determined as det
from determined.experimental import client
from determined.pytorch import experimental


class Evaluate(experimental.TorchBatchProcessor):
    def __init__(self, context):
        self.context = context
        self.right = 0
        context.report_task_using_model_version(version)

    def process_batch(self, batch, batch_idx):
        self.right += int(batch.sum())

    def on_finish(self):
        self.context.report_metrics("inference", 1, {"right": self.right})


if __name__ == "__main__":
    info = det.get_cluster_info()
    with det.core.init() as core_context:
        with core_context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "weights").write_text("w")
    name = f"model-of-trial-{info.trial.trial_id}"
    model = client.create_model(name, description="made in a trial", metadata={"from": "a script"})
    version = model.register_version(uuid)
    assert client.get_model(name).get_version(version.model_version).checkpoint.uuid == uuid
    experimental.torch_batch_process(Evaluate, torch.ones(6), batch_size=2, max_batches=2)
    (metrics,) = version.iter_metrics("inference")
    assert metrics.metrics["right"] == 4, metrics
    for each in version.checkpoint.get_metrics():
        print(each.steps_completed, each.metrics)
