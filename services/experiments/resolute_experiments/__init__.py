"""The experiments service: experiments, trials, runs, allocations and users.

At the top are the service itself (`service`, `blueprint`), the modules that every part uses (`context`,
`clients`, `topics`, `timing`), its gauges, and the migrations of its database. Each package below has one
subject.
"""
