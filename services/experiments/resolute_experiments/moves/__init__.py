"""Carries out what the tables of states say, inside of transactions."""

from resolute_experiments.moves.experiment import move_experiment
from resolute_experiments.moves.trial import move_trial

__all__ = ["move_experiment", "move_trial"]
