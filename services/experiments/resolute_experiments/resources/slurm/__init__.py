"""Slurm, by its own commands.

`commands` runs them with deadlines and bounds, here or on a `login` node, `jobs` reads what they print into
values, and `client` submits, finds and ends jobs by their names. `manager` runs trials through them:
`submission` writes a job and its run directories, which lie on storage that the nodes share, `containers`
puts its supervisors into images, `states` tells what became of them, `settings` is what may be said of it,
and `opening` makes it of that. `sight` asks the nodes what they see.
"""
