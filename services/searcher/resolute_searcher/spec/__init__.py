"""The specification of a search.

It has the hyperparameter space, the settings of each method, the layout of brackets and grids, and the checks
that list all violations at once. It depends neither on methods nor on messages.
"""
