"""DeepSpeed Autotune: searches for the DeepSpeed config that trains a model fastest.

``python3 -m determined.pytorch.dsat random CONFIG MODEL_DIR`` submits an experiment that runs the search.
"""

from determined.pytorch.dsat.config import get_ds_config_from_hparams
from determined.pytorch.dsat.hugging_face import get_hf_args_with_overwrites
from determined.pytorch.dsat.methods.asha import ASHADSATSearchMethod
from determined.pytorch.dsat.methods.base import BaseDSATSearchMethod
from determined.pytorch.dsat.methods.binary import BinarySearchDSATSearchMethod
from determined.pytorch.dsat.methods.random import RandomDSATSearchMethod
from determined.pytorch.dsat.trials import DSATModelProfileInfoTrial, DSATTrial, DSATTrialTracker
from resolute.pytorch.deepspeed.measurements import report_measurements as dsat_reporting_context

__all__ = [
    "ASHADSATSearchMethod",
    "BaseDSATSearchMethod",
    "BinarySearchDSATSearchMethod",
    "DSATModelProfileInfoTrial",
    "DSATTrial",
    "DSATTrialTracker",
    "RandomDSATSearchMethod",
    "dsat_reporting_context",
    "get_ds_config_from_hparams",
    "get_hf_args_with_overwrites",
]
