"""Carries out the state tables of `states`, inside transactions.

Only this package writes the state of an experiment, of a trial, or of an allocation and its signal.
"""

from resolute_experiments.transitions.experiment import transition_experiment
from resolute_experiments.transitions.trial import transition_trial

__all__ = ["transition_experiment", "transition_trial"]
