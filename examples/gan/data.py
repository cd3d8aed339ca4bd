"""Handwritten digits: 1797 real images of 8x8 pixels that come with scikit-learn; nothing is downloaded."""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

VALIDATION_IMAGES = 297


def load_images():
    """Returns images for training and for validation, with pixels from -1 to 1."""
    images = torch.tensor(load_digits().images, dtype=torch.float32) / 8.0 - 1.0
    return TensorDataset(images[VALIDATION_IMAGES:]), TensorDataset(images[:VALIDATION_IMAGES])
