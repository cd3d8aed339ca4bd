"""The responses of services as plain immutable values.

Records of experiments, trials, checkpoints and accounts, their states, the orders that lists can have, and
the conversion from the contract's messages.
"""
