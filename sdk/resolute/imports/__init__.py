"""Imports the objects of a Determined cluster by its REST API, from releases 0.19 to 0.38.

Every object keeps a key. Checkpoints keep their UUIDs; users, workspaces, projects and templates keep their
names; experiments, trials and models get identifiers made of the other cluster's UUID and their numbers
there. A repeated import skips the objects that are already here and imports the rest.
"""
