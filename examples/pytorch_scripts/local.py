"""One process on this machine: `python3 local.py`, or one batch only by `python3 local.py --test`."""

import logging
import sys

from model_def import DigitsTrial

import determined as det
from determined import pytorch


def main():
    with det.pytorch.init() as train_context:
        trial = DigitsTrial(train_context, hidden=32)
        trainer = det.pytorch.Trainer(trial, train_context)
        trainer.fit(
            max_length=pytorch.Epoch(1),
            checkpoint_period=pytorch.Batch(20),
            validation_period=pytorch.Batch(20),
            checkpoint_policy="all",
            test_mode="--test" in sys.argv,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
