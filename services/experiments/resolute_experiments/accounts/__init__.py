"""Users with their tokens and roles, workspaces with their projects, and how people sign in.

The rest of this service uses this package. Of the rest, this package uses only the tables of experiments and
runs: they tell what belongs to whom, and what is in use.
"""
