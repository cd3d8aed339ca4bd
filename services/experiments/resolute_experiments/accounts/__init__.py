"""Users with their tokens and roles, workspaces with their projects, and sign-in.

The rest of this service uses this package. This package uses only the tables of experiments and runs, for
their owners and for current usage.
"""
