"""The command line.

`main` is its entry. Each group of commands has a folder of its name; the groups about users, tokens,
workspaces and projects are in `accounts`, those about the cluster in `cluster`. `registry` lists all
commands, `options` parses their arguments, `display` prints results.
"""
