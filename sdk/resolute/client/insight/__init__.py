"""Explanations of the states of trials and experiments, from the reasons that the services recorded.

Nothing is decided again: `decisions` reads the log of the search, `trials` and `experiments` combine it with
the changes of states that the experiments service recorded.
"""
