"""Training with DeepSpeed's engines: you write a ``DeepSpeedTrial``, and a ``Trainer`` runs it.

::

    with deepspeed.init(hparams={"lr": 0.001}) as context:
        trainer = deepspeed.Trainer(MyTrial(context), context)
        trainer.fit(max_length=pytorch.Epoch(10), validation_period=pytorch.Epoch(1))

Importing this package does not import DeepSpeed, so trials can be inspected where DeepSpeed is not installed.
"""

from resolute.pytorch.deepspeed.config import overwrite_deepspeed_config
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.initialization import init
from resolute.pytorch.deepspeed.model_parallel import (
    ModelParallelUnit,
    make_data_parallel_mpu,
    make_deepspeed_mpu,
)
from resolute.pytorch.deepspeed.trainer import Trainer
from resolute.pytorch.deepspeed.trial import DeepSpeedTrial

__all__ = [
    "DeepSpeedTrial",
    "DeepSpeedTrialContext",
    "ModelParallelUnit",
    "Trainer",
    "init",
    "make_data_parallel_mpu",
    "make_deepspeed_mpu",
    "overwrite_deepspeed_config",
]
