"""Commands of `resolute experiment`.

What only shows something is in `views`; what only changes an experiment's state is in `change`.
"""
