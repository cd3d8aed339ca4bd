"""DeepSpeed Autotune: searches for the DeepSpeed config that trains a model fastest.

``python3 -m determined.pytorch.dsat random CONFIG MODEL_DIR`` submits an experiment that runs the search.
"""

from resolute.pytorch.dsat.config import get_ds_config_from_hparams
from resolute.pytorch.dsat.hugging_face import get_hf_args_with_overwrites
from resolute.pytorch.dsat.methods.asha import ASHADSATSearchMethod
from resolute.pytorch.dsat.methods.base import BaseDSATSearchMethod
from resolute.pytorch.dsat.methods.binary import BinarySearchDSATSearchMethod
from resolute.pytorch.dsat.methods.random import RandomDSATSearchMethod
from resolute.pytorch.dsat.reporting import dsat_reporting_context
from resolute.pytorch.dsat.trials import DSATModelProfileInfoTrial, DSATTrial, DSATTrialTracker

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
