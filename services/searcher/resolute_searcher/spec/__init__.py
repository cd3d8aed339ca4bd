"""What is asked of a search: the hyperparameter space, the settings of each method.

How brackets of successive halving and grids are laid out, and the checks that list every violation at once.
It knows neither methods nor messages.
"""
