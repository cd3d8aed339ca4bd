"""A service's own database: one writer thread with group commit and a few reader threads.

Explicit migrations, and the periodic removal of data past its retention.
"""
