"""torch_batch_process over a dataset: predictions to files, metrics, a reducer."""

import torch

from determined.pytorch import MetricReducer, experimental


class Total(MetricReducer):
    def reset(self):
        self.total = 0.0

    def update(self, value):
        self.total = getattr(self, "total", 0.0) + value

    def per_slot_reduce(self):
        return self.total

    def cross_slot_reduce(self, per_slot_metrics):
        return sum(per_slot_metrics)


class Inference(experimental.TorchBatchProcessor):
    def __init__(self, context: experimental.TorchBatchProcessorContext):
        self.context = context
        self.model = context.prepare_model_for_inference(torch.nn.Linear(2, 1))
        assert not self.model.training
        self.scale = context.get_hparams()["scale"]
        self.total = context.wrap_reducer(Total(), name="total", for_training=False)
        self.outputs = []
        assert context.device == torch.device("cpu")
        assert (context.get_distributed_rank(), context.get_distributed_size()) == (0, 1)
        assert context.get_tensorboard_path() is not None

    def process_batch(self, batch, batch_idx):
        batch = self.context.to_device(batch)
        with torch.no_grad():
            self.outputs.append(self.model(batch) * self.scale)
        self.total.update(len(batch))

    def on_checkpoint_start(self):
        if self.outputs:
            with self.context.upload_path() as path:
                torch.save(self.outputs, path / "predictions.pt")
            self.outputs = []

    def on_finish(self):
        self.context.report_metrics(group="inference", steps_completed=1, metrics={"done": 1})


if __name__ == "__main__":
    experimental.torch_batch_process(
        Inference,
        torch.ones(10, 2),
        batch_size=3,
        checkpoint_interval=2,
        dataloader_kwargs={"num_workers": 0},
    )
