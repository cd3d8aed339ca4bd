"""Metrics over all batches and all slots at once."""

import torch

from resolute.pytorch import MetricReducer

CLASSES = 10


class Confusion(MetricReducer):
    """Counts which digit was taken for which. A mean of the batches' accuracies would weigh them wrongly."""

    def __init__(self):
        self.latest = None
        self.reset()

    def reset(self):
        self.counts = torch.zeros(CLASSES, CLASSES, dtype=torch.long)

    def update(self, digits, guesses):
        cells = (digits * CLASSES + guesses).cpu()
        self.counts += torch.bincount(cells, minlength=CLASSES * CLASSES).reshape(CLASSES, CLASSES)

    def per_slot_reduce(self):
        return self.counts

    def cross_slot_reduce(self, per_slot_metrics):
        self.latest = counts = sum(per_slot_metrics)
        hits, seen = counts.diagonal(), counts.sum(dim=1)
        of_digit = hits / seen.clamp(min=1)
        return {"accuracy": (hits.sum() / seen.sum()).item(), "worst_digit_accuracy": of_digit.min().item()}


def largest(norms):
    """A reducer may be a function of all values that were given to `update`."""
    return max(norms)
