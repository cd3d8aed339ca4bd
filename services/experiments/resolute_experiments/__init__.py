"""The experiments service: configs, trials, runs, allocations, users; it leads experiments to their ends.

At the top are the service itself (`service`, `blueprint`), what every part uses (`context`, `clients`,
`notifier`, `moment`, `backoff`, `passwords`), its gauges, and the migrations of its database; each room
below holds one subject.
"""
