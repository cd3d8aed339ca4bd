"""Imports DeepSpeed when a trial begins, and not before."""

from __future__ import annotations

from typing import Any

from resolute.contracts.distribution import install_command


def import_deepspeed() -> Any:
    """Imports ``deepspeed``.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import deepspeed
    except ImportError as failure:
        raise ImportError(
            f"a DeepSpeedTrial needs DeepSpeed, which cannot be imported ({failure}): install it beside "
            f"torch, with DS_BUILD_OPS=0 {install_command('deepspeed')}; or write a "
            "resolute.pytorch.PyTorchTrial, which needs torch alone"
        ) from failure
    return deepspeed
