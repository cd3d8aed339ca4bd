"""What runs beside an actor of Ray: a keeper of its supervisor, which is told by pipes."""
