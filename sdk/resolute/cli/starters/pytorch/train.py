"""Trains the trial here, without a cluster: `python3 train.py`."""

import logging

import resolute
from resolute import pytorch

HPARAMS = {"lr": 0.01, "hidden": 32, "global_batch_size": 32}


def main():
    from model_def import MyTrial

    with pytorch.init(hparams=HPARAMS) as context:
        trainer = pytorch.Trainer(MyTrial(context), context)
        trainer.fit(
            max_length=pytorch.Epoch(3),
            validation_period=pytorch.Epoch(1),
            reporting_period=pytorch.Batch(10),
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
