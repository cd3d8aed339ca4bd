"""The engines that run trials, and their pools of machines.

`protocol` is what every engine implements: a subpackage each, opened by the `registry` from the `settings`.
An `engine` keeps the database's view of its containers true to what it sees, the `fleet` is all of them
together, and `leases` tell who is alive.
"""
