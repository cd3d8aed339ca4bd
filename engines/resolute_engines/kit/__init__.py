"""Parts that several engines share: attempts, named tasks, polling, late kills, releases, run directories."""
