"""The tables of this service, their rows as typed values, and the statements that read and write them.

It contains no rules.
"""
