"""The state machine of one search.

It has the state, the checks of events, the decisions on events, and replay, which repeats the decisions of a
log. It uses no database, no network and no clock.
"""
