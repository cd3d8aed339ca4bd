"""Commands of `resolute experiment`.

`views` has the commands that only show something; `change` has those that only change an experiment's state.
"""
