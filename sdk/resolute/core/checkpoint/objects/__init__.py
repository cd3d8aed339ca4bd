"""Object stores reached with credentials of one's own: one protocol, one module a kind of store."""
