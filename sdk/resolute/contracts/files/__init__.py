"""Files that both sides read or write: names, digests, archives of code, files replaced whole or mapped."""
