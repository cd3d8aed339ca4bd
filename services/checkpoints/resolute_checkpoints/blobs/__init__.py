"""Where the bytes of checkpoints lie: one protocol, one module a kind of store."""
