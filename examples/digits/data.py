"""Handwritten digits: 1797 real images of 8x8 pixels that come with scikit-learn; nothing is downloaded."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

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
    images, digits = read_digits()
    everything = Split(images.unsqueeze(1), digits)
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(SPLIT_SEED))
    return everything[order[VALIDATION_IMAGES:]], everything[order[:VALIDATION_IMAGES]]


def read_digits():
    """Returns images, (1797, 8, 8) from 0 to 1, and their digits.

    Reads what sklearn.datasets.load_digits reads; importing scikit-learn takes longer than training an epoch.
    """
    (folder,) = importlib.util.find_spec("sklearn").submodule_search_locations
    table = np.loadtxt(Path(folder, "datasets", "data", "digits.csv.gz"), delimiter=",", dtype=np.uint8)
    images, digits = torch.from_numpy(table[:, :64]), torch.from_numpy(table[:, 64])
    return images.reshape(-1, 8, 8).float() / 16.0, digits.long()
