"""The specification of a search.

The hyperparameter space, the settings of each method, how brackets of successive halving and grids are laid
out, and the checks that list every violation at once. It knows neither methods nor messages.
"""
