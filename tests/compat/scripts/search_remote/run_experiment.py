"""A custom search as an experiment of its own, with RemoteSearchRunner."""

import logging
import os

import yaml

import determined as det
from determined.searcher import RemoteSearchRunner
from method import Halving

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    assert os.path.exists("trial/train.py")
    with open("experiment.yaml") as file:
        config = yaml.safe_load(file)
    with det.core.init() as core_context:
        RemoteSearchRunner(Halving(2), context=core_context).run(config, model_dir="trial")
