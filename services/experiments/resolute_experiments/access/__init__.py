"""Sign-in and tokens.

Passwords and how often they may be tried, the issue of tokens, and the record of what was refused.
"""
