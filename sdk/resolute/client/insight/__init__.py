"""Why trials and experiments are where they are, from what the services recorded when they decided.

Nothing is decided again: `decisions` reads the log of the search, `trials` and `experiments` combine it with
the changes of states that the experiments service recorded.
"""
