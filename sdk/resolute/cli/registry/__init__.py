"""Which commands there are: the table of all groups and commands, their loading when they run.

And the commands that other distributions add.
"""
