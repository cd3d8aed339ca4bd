"""The device on which a rank trains."""

from __future__ import annotations

import torch


def choose_device(local_rank: int) -> torch.device:
    """Returns this rank's device: a CUDA GPU, otherwise Apple's GPU, otherwise the CPU.

    Args:
        local_rank: Index of the rank on its machine; decides among the GPUs that the process may see.
    """
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device
    mps = getattr(torch.backends, "mps", None)
    if mps is not None and mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
