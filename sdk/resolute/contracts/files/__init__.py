"""Files that both sides read or write: names, digests, archives of code, atomic and mapped files."""
