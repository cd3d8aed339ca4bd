"""Loads the best checkpoint of an experiment: `python3 load.py 7`."""

import sys

from determined import pytorch
from determined.experimental import client


def main(experiment):
    checkpoint = client.get_experiment(experiment).top_checkpoint()
    path = checkpoint.download()
    # The class and its code are in the checkpoint; its other arguments are given here.
    trial = pytorch.load_trial_from_checkpoint_path(path, trial_kwargs={"hidden": 32})
    batches = [trial.evaluate_batch(batch) for batch in trial.build_validation_data_loader()]
    accuracy = sum(metrics["accuracy"].item() for metrics in batches) / len(batches)
    print(f"{type(trial).__name__} of step {checkpoint.metadata['steps_completed']}: {accuracy:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
