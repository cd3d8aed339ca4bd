"""The database of a service.

It has one writer thread with group commit and a few reader threads, explicit migrations, and the periodic
removal of data past its retention.
"""
