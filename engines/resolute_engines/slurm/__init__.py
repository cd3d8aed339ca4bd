"""The Slurm engine, by Slurm's own commands.

`commands` runs them with deadlines and bounds, here or on a login node, and parses their output. `client`
submits, lists and ends jobs by name. `engine` runs trials as jobs: `request` writes a job and its run
directories, which are on storage that the nodes share, `containers` starts supervisors in images, `states`
derives the states of containers, `settings` has the options, and `factory` creates the engine. `node_check`
checks the nodes.
"""
