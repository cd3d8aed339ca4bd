"""Handwritten digits: 1797 real images of 8x8 pixels that come with scikit-learn; nothing is downloaded."""

from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits

VALIDATION_IMAGES = 360
SPLIT_SEED = 0  # the same split for every trial: their accuracies are of the same images


@dataclass(frozen=True)
class Split:
    """Images, (n, 1, 8, 8) from 0 to 1, with their digits, (n,)."""

    images: torch.Tensor
    digits: torch.Tensor

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, index):
        return Split(self.images[index], self.digits[index])

    def to(self, device):
        return Split(self.images.to(device), self.digits.to(device))


def load_splits():
    """Returns the training and the validation split."""
    bunch = load_digits()
    everything = Split(
        images=torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16.0,
        digits=torch.tensor(bunch.target, dtype=torch.long),
    )
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(SPLIT_SEED))
    return everything[order[VALIDATION_IMAGES:]], everything[order[:VALIDATION_IMAGES]]
