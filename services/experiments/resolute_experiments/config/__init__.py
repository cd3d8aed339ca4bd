"""The config of an experiment: read, merged, completed and checked.

``parse_config`` turns a user's YAML into a frozen ``ExperimentConfig``, or raises one ``ConfigError`` that
lists all faults.
"""

from resolute.contracts.documents.faults import ConfigError, Fault
from resolute_experiments.config.experiment import ExperimentConfig
from resolute_experiments.config.ineffective_fields import (
    LOCAL_PROCESSES,
    ConfigWarning,
    Ineffective,
    ineffective_fields,
)
from resolute_experiments.config.loading.parse import Layer, first_given, parse_config
from resolute_experiments.config.sections.entrypoint import is_trial_class, runs_trial_class
from resolute_experiments.config.sections.hyperparameters import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    LogRange,
)
from resolute_experiments.config.sections.length import Length
from resolute_experiments.config.sections.searcher import (
    AdaptiveAshaSearcher,
    AsyncHalvingSearcher,
    CustomSearcher,
    GridSearcher,
    RandomSearcher,
    SingleSearcher,
)
from resolute_experiments.config.sections.storage import (
    AzureStorage,
    DirectoryStorage,
    GcsStorage,
    S3Storage,
    SharedFsStorage,
)
from resolute_experiments.config.test_mode import to_test_mode

__all__ = [
    "LOCAL_PROCESSES",
    "AdaptiveAshaSearcher",
    "AsyncHalvingSearcher",
    "AzureStorage",
    "Categorical",
    "ConfigError",
    "ConfigWarning",
    "Const",
    "CustomSearcher",
    "DirectoryStorage",
    "DoubleRange",
    "ExperimentConfig",
    "Fault",
    "GcsStorage",
    "GridSearcher",
    "Hyperparameter",
    "Ineffective",
    "IntRange",
    "Layer",
    "Length",
    "LogRange",
    "RandomSearcher",
    "S3Storage",
    "SharedFsStorage",
    "SingleSearcher",
    "first_given",
    "ineffective_fields",
    "is_trial_class",
    "parse_config",
    "runs_trial_class",
    "to_test_mode",
]
