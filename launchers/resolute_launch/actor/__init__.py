"""What runs beside an actor of Ray: a shim of its supervisor, which is told by pipes."""
