"""The registry of commands.

It has the table of all groups and commands, loads them lazily, and adds the commands of other distributions.
"""
