"""How a batch of reports is stored exactly once: parsing, checks of names.

Conflicts with what is known, and the write.
"""
