"""Slurm, by its own commands.

`commands` runs them with deadlines and bounds, here or on a login node, and reads what they print into
values; `client` submits, finds and ends jobs by their names. `engine` runs trials through them: `request`
writes a job and its run directories, which lie on storage that the nodes share, `containers`
puts its supervisors into images, `states` says what became of them, `settings` has its options,
and `factory` makes it of that. `node_check` asks the nodes what they see.
"""
