"""Trains the trial by a script of one's own: here with `python3 train.py`, or on a cluster."""

import argparse
import logging

from model_def import DigitsTrial

import resolute
from resolute import pytorch

DEFAULT_HPARAMS = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "global_batch_size": 64}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="how long to train without a cluster")
    parser.add_argument("--test", action="store_true", help="train one batch only")
    arguments = parser.parse_args()
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    with pytorch.init(hparams=hparams) as context:
        trainer = pytorch.Trainer(DigitsTrial(context), context)
        trainer.fit(
            max_length=pytorch.Epoch(arguments.epochs) if info is None else None,
            validation_period=pytorch.Epoch(1),
            reporting_period=pytorch.Batch(10),
            latest_checkpoint=None if info is None else info.latest_checkpoint,
            test_mode=arguments.test,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
