"""The tables of this service (`schema`), their rows as typed values.

And the statements that read and write them. No rules live here.
"""
