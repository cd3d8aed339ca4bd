"""For a cluster only, where `searcher.max_length` of the config says how long to train."""

import logging

from model_def import DigitsTrial

import determined as det
from determined import pytorch


def main():
    with det.pytorch.init() as train_context:
        trial = DigitsTrial(train_context, hidden=32)
        trainer = det.pytorch.Trainer(trial, train_context)
        trainer.fit(
            checkpoint_period=pytorch.Batch(20),
            validation_period=pytorch.Batch(20),
            latest_checkpoint=det.get_cluster_info().latest_checkpoint,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
