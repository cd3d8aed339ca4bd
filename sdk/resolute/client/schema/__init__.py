"""What services answer, as plain immutable values: records of experiments, trials.

Checkpoints and accounts, their states, the orders that lists can have, and the conversion from the
contract's messages.
"""
