"""Carries out what the tables of states say, inside of transactions."""

from resolute_experiments.transitions.experiment import transition_experiment
from resolute_experiments.transitions.trial import transition_trial

__all__ = ["transition_experiment", "transition_trial"]
