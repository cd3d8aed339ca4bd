"""Which commands there are.

The table of all groups and commands, their loading when they run, and the commands that other distributions
add.
"""
