"""Trains the trial by a script of one's own: `python3 train.py`, `deepspeed train.py`, or on a cluster."""

import argparse
import logging

from model_def import DigitsTrial

import determined as det
from determined import pytorch
from determined.pytorch import deepspeed as det_ds

DEFAULT_HPARAMS = {"hidden": 64, "overwrite": {}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="how long to train without a cluster")
    parser.add_argument("--local_rank", type=int, help="given by DeepSpeed's launcher")
    arguments = parser.parse_args()
    info = det.get_cluster_info()
    with det_ds.init(hparams=DEFAULT_HPARAMS if info is None else info.trial.hparams) as context:
        trainer = det_ds.Trainer(DigitsTrial(context), context)
        trainer.fit(
            max_length=pytorch.Epoch(arguments.epochs) if info is None else None,
            validation_period=pytorch.Epoch(1),
            reporting_period=pytorch.Batch(10),
            latest_checkpoint=None if info is None else info.latest_checkpoint,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
