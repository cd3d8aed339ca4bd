"""The searcher's tables and all SQL: logs, searches, trials and snapshots.

The packed form of a snapshot and the fingerprint of the code that wrote it. Each function is work for one
transaction.
"""
