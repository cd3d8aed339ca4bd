"""The shim of a supervisor on a node of an allocation of Slurm."""
