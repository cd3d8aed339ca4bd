"""The searcher's tables and all SQL.

It stores logs, searches, trials and snapshots, and has the packed form of a snapshot and the fingerprint of
the code that wrote it. Each function works within one transaction.
"""
