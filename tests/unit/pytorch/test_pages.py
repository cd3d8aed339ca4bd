"""The page about PyTorch names every hook of callbacks and every step mode."""

from __future__ import annotations

import inspect
from pathlib import Path

from resolute import pytorch

PAGE = (Path(__file__).parents[3] / "docs/pytorch.md").read_text()


def test_every_hook_of_a_callback_is_named_with_its_arguments() -> None:
    hooks = [
        (name, function)
        for name, function in vars(pytorch.PyTorchCallback).items()
        if name.startswith("on_") and name != "on_checkpoint_end"
    ]
    assert len(hooks) > 10
    for name, function in hooks:
        arguments = [one for one in inspect.signature(function).parameters if one != "self"]
        assert f"`{name}({', '.join(arguments)})`" in PAGE


def test_every_step_mode_is_named() -> None:
    for mode in pytorch.LRScheduler.StepMode:
        assert f"| `{mode.name}` |" in PAGE
