"""Handwritten digits as images: they come with scikit-learn, so nothing is downloaded."""

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

VALIDATION_IMAGES = 360


class Digits(Dataset):
    """Pairs of an image and its digit. timm's loaders set `transform`."""

    def __init__(self, split):
        bunch = load_digits()
        order = np.random.RandomState(0).permutation(len(bunch.target))
        chosen = order[:VALIDATION_IMAGES] if split == "validation" else order[VALIDATION_IMAGES:]
        self.pixels = (bunch.images[chosen] * (255 / 16)).astype(np.uint8)
        self.digits = bunch.target[chosen]
        self.transform = None

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, index):
        image = Image.fromarray(self.pixels[index]).convert("RGB")
        return self.transform(image) if self.transform else image, int(self.digits[index])
