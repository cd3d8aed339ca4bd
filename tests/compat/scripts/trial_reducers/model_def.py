"""Metric reducers of every kind, and callbacks that look at what they give."""

import numpy as np
import torch

from determined import pytorch


class Worst(pytorch.MetricReducer):
    def __init__(self):
        self.reset()

    def reset(self):
        self.values = []

    def update(self, values):
        self.values.extend(float(value) for value in values)

    def per_slot_reduce(self):
        return self.values

    def cross_slot_reduce(self, per_slot_metrics):
        return max(value for values in per_slot_metrics for value in values)


def spread(values):
    return {"low": float(np.min(values)), "high": float(np.max(values))}


class Watch(pytorch.PyTorchCallback):
    def on_validation_end(self, metrics):
        assert metrics["low"] <= metrics["high"] <= metrics["worst"], metrics
        assert metrics["count"] == 8, metrics

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        assert len(batch_metrics) > 0


class ReducerTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.01))
        self.worst = context.wrap_reducer(Worst(), name="worst", for_training=False)
        self.spread = context.wrap_reducer(spread, name=None)

    def build_training_data_loader(self):
        return pytorch.DataLoader(torch.arange(8.0).unsqueeze(1), batch_size=2, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(torch.arange(8.0).unsqueeze(1), batch_size=2)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch).abs().mean() * self.context.get_hparam("scale")
        self.spread.update(loss.item())
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        errors = self.model(batch).abs().flatten()
        self.worst.update(errors)
        for error in errors:
            self.spread.update(error.item())
        return {"count": len(batch), "mean": errors.mean()}

    def evaluation_reducer(self):
        return {"count": pytorch.Reducer.SUM, "mean": pytorch.Reducer.AVG}

    def build_callbacks(self):
        return {"watch": Watch()}
