"""The rendezvous of a run's containers before the script starts."""
