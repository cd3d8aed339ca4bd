"""Run directories, one for each container: the state of a run and its unsent data."""
