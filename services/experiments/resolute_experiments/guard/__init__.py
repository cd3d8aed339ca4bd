"""The guard of an experiment: it detects bad training reports, and sets the trial back to a checkpoint."""
