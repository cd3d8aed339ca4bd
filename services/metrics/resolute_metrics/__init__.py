"""The metrics service: stores reports exactly once, in columns, and answers queries without full scans."""
