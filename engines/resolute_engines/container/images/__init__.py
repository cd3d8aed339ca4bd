"""Container images: their names, their credentials and their pulls."""
