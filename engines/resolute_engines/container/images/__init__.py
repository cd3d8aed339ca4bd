"""Images of containers: their names, their credentials and their pulls."""
