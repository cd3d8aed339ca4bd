"""A sheet of generated images in every checkpoint."""

from pathlib import Path

import torch

from resolute.pytorch import PyTorchCallback

COLUMNS = 8
SIDE = 8


class SampleSheet(PyTorchCallback):
    """Draws the same noise through the generator each time, so that sheets can be compared."""

    def __init__(self, generate, noise):
        self.generate = generate
        self.noise = torch.randn(COLUMNS * COLUMNS, noise, generator=torch.Generator().manual_seed(0))

    def on_checkpoint_write_end(self, checkpoint_dir):
        with torch.no_grad():
            images = self.generate(self.noise).cpu()
        rows = [torch.cat(list(row), dim=1) for row in images.reshape(COLUMNS, COLUMNS, SIDE, SIDE)]
        write_picture(Path(checkpoint_dir) / "samples.pgm", torch.cat(rows))


def write_picture(path, pixels):
    """Writes pixels from -1 to 1 as a portable graymap."""
    height, width = pixels.shape
    gray = ((pixels + 1.0) * 127.5).round().to(torch.uint8)
    path.write_bytes(b"P5 %d %d 255\n" % (width, height) + gray.numpy().tobytes())
