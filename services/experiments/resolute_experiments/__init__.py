"""The experiments service: configs, trials, runs, allocations, users; it leads experiments to their ends."""
