"""Parts of the API that may still change."""

from __future__ import annotations

import torch

from resolute import core
from resolute.pytorch.backends.devices import choose_device
from resolute.pytorch.batch_processing import (
    TorchBatchProcessor,
    TorchBatchProcessorContext,
    torch_batch_process,
)

__all__ = [
    "TorchBatchProcessor",
    "TorchBatchProcessorContext",
    "get_default_device",
    "torch_batch_process",
]


def get_default_device(core_context: core.Context) -> torch.device:
    """Returns the device of this process: its GPU, or the CPU.

    Args:
        core_context: Tells the rank on this machine, which decides among GPUs.
    """
    return choose_device(core_context.distributed.local_rank)
