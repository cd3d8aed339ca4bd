"""The random numbers of a rank: kept and resumed, on every kind of device."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest
import torch

from resolute.pytorch.backends import random_state


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(1))


def test_the_block_draws_what_it_wants_and_nothing_changes() -> None:
    random_state.seed_all(5)
    expected = draws()
    random_state.seed_all(5)
    with random_state.preserve_random_state(torch.device("cpu")):
        draws()
    assert draws() == expected


def test_the_generator_of_an_apple_gpu_is_kept_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[torch.Tensor] = []
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.tensor([1, 2], dtype=torch.uint8))
    monkeypatch.setattr(torch.mps, "set_rng_state", taken.append)
    device = torch.device("mps")
    state = random_state.capture(device)
    random_state.restore(state, device)
    assert [value.tolist() for value in taken] == [[1, 2]]
    with caplog.at_level(logging.WARNING):
        random_state.restore(random_state.capture(torch.device("cpu")), device)
    assert "has no random numbers of a GPU" in caplog.text
