"""Handwritten digits: 1797 real images of 8x8 pixels that come with scikit-learn; nothing is downloaded."""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

VALIDATION_IMAGES = 360
SPLIT_SEED = 0  # the same split for every trial: their accuracies are of the same images


def load_splits():
    """Returns the training and the validation split."""
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16.0
    digits = torch.tensor(bunch.target, dtype=torch.long)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(SPLIT_SEED))
    validation, training = order[:VALIDATION_IMAGES], order[VALIDATION_IMAGES:]
    return (
        TensorDataset(images[training], digits[training]),
        TensorDataset(images[validation], digits[validation]),
    )
