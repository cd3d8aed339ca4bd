"""The home directory of one cluster: its identity, copies, keys, database moves, and its serving process."""
