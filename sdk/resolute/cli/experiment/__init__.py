"""Commands of `resolute experiment`, each in a module of its name.

What only changes an experiment's state is in `change`.
"""
