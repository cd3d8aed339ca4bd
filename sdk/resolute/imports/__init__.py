"""Takes over what a Determined cluster knows, by its REST API, from releases 0.19 to 0.38.

Everything has a key that it keeps: checkpoints their UUIDs, users, workspaces, projects and templates their
names, experiments, trials and models identifiers that are made of the other cluster's UUID and their numbers
there. A call that is repeated finds what has come, and brings the rest.
"""
