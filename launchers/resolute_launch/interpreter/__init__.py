"""On the path of every interpreter of a run: what it reads at its start, by names of its own."""
