"""The random state of a rank, saved and restored with checkpoints."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

_log = logging.getLogger("resolute.pytorch")


def capture(device: torch.device) -> dict[str, Any]:
    """Returns the states of all random generators that training uses."""
    state = {
        "cpu_rng_state": torch.random.get_rng_state(),
        "np_rng_state": np.random.get_state(),
        "random_rng_state": random.getstate(),
    }
    if device.type == "cuda":
        state["gpu_rng_state"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["gpu_rng_state"] = torch.mps.get_rng_state()
    return state


def restore(state: Mapping[str, Any], device: torch.device) -> None:
    """Restores the states that ``capture`` returned."""
    torch.random.set_rng_state(state["cpu_rng_state"])
    np.random.set_state(state["np_rng_state"])
    random.setstate(state["random_rng_state"])
    if device.type in {"cuda", "mps"}:
        if "gpu_rng_state" not in state:
            _log.warning("the checkpoint has no random numbers of a GPU: those of this run are new")
        elif device.type == "cuda":
            torch.cuda.set_rng_state(state["gpu_rng_state"].cpu(), device)
        else:
            torch.mps.set_rng_state(state["gpu_rng_state"].cpu())


@contextlib.contextmanager
def preserve_random_state(device: torch.device) -> Iterator[None]:
    """Restores the states of the random generators after the block."""
    state = capture(device)
    try:
        yield
    finally:
        restore(state, device)


def seed_all(seed: int) -> None:
    """Seeds every random generator that training uses."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    torch.random.manual_seed(seed)
