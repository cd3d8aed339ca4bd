"""The Core API: ``resolute.core``, with an ``init`` under which a wrong report raises in its call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import resolute.core
from resolute.core import *
from resolute.core import Context, DistributedContext, PreemptMode, Strictness, TensorboardMode, _dummy_init


def init(  # type: ignore[no-redef] # takes the place of the one that is imported with the rest
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    offline_dir: str | os.PathLike[str] | None = None,
) -> Context:
    """Makes the context of a training script, as ``resolute.core.init`` does.

    A report with content that cannot be recorded, or of another rank than 0, raises in the call.
    """
    return resolute.core.init(
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
        offline_dir=offline_dir,
        strictness=Strictness.RAISE,
    )
