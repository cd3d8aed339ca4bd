"""The directory of one cluster: its identity, copies, keys, databases that move, and who serves it."""
