"""Generators of a script whose states a checkpoint keeps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from resolute.pytorch.data.generators import OwnGenerators

KINDS: dict[str, Callable[[], Any]] = {
    "random": lambda: random.Random(1),
    "generator": lambda: np.random.default_rng(1),
    "random_state": lambda: np.random.RandomState(1),
    "torch": lambda: torch.Generator().manual_seed(1),
}


@pytest.mark.parametrize(("before", "now"), list(itertools.permutations(KINDS, 2)))
def test_a_generator_of_another_kind_than_before_begins_anew_with_a_warning(
    before: str, now: str, caplog: pytest.LogCaptureFixture
) -> None:
    saved = OwnGenerators(SimpleNamespace(noise=KINDS[before](), kept=random.Random(5))).states()
    kept = random.Random(6)
    OwnGenerators(SimpleNamespace(noise=KINDS[now](), kept=kept)).restore(saved)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("noise (")
    assert "begins anew" in line
    assert kept.random() == random.Random(5).random()


def test_a_generator_of_a_device_that_is_not_here_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    of_a_gpu = {".noise": torch.zeros(16, dtype=torch.uint8)}
    OwnGenerators(SimpleNamespace(noise=torch.Generator())).restore(of_a_gpu)
    assert "noise (Generator) begins anew" in caplog.text
