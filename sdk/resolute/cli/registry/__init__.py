"""The registry of commands.

It has the table of all groups and commands, their lazy loading, and the commands that other distributions
add.
"""
