"""The shim of a supervisor on a node of a Slurm allocation."""
