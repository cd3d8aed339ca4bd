"""Files that both sides of a boundary use: names, digests, archives of code, atomic and mapped files."""
