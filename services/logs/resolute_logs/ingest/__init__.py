"""How a batch of lines is stored exactly once: parsing and the write."""
