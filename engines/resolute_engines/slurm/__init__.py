"""Slurm, by its own commands.

`commands` runs them with deadlines and bounds, here or on a login node, and reads what they print into
values; `client` submits, finds and ends jobs by their names. `engine` runs trials through them: `request`
writes a job and its run directories, which lie on storage that the nodes share, `containers`
puts its supervisors into images, `states` derives their states, `settings` has the options, and `factory`
creates the engine. `node_check` checks the nodes.
"""
