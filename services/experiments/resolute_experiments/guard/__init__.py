"""The guard of an experiment: it finds bad reports of training, and lets the trial go back."""
