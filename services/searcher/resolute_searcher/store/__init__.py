"""The searcher's tables and all SQL.

Logs, searches, trials and snapshots, the packed form of a snapshot and the fingerprint of the code that
wrote it. Each function is work for one transaction.
"""
