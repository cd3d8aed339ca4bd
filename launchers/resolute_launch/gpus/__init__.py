"""The GPU usage of a run: `meter` adds up what `counters` reads, and tells `idleness`."""
