"""A custom search that a program runs, with LocalSearchRunner."""

from pathlib import Path

from determined import searcher
from determined.experimental import client
from method import Halving

if __name__ == "__main__":
    config = {
        "name": "halving",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "custom", "metric": "loss", "smaller_is_better": True, "unit": "batches"},
        "hyperparameters": {"lr": 0.1},
        "max_restarts": 0,
    }
    runner = searcher.LocalSearchRunner(Halving(2), searcher_dir=Path("search_state"))
    experiment_id = runner.run(config, model_dir="trial")
    experiment = client.get_experiment(experiment_id)
    assert experiment.wait(interval=0.2) == client.ExperimentState.COMPLETED
    assert len(experiment.list_trials()) == 2
