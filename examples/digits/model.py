"""A small convolutional network for images of 8x8 pixels."""

from torch import nn


class DigitsNet(nn.Module):
    """Gives a score to each of the ten digits.

    Args:
        hidden: Units of the layer between the convolutions and the scores.
        dropout: Share of these units that each training step leaves out.
    """

    def __init__(self, *, hidden, dropout):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 10),
        )

    def forward(self, images):
        return self.layers(images)
