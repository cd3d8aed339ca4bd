"""How lines are read: filters, regular expressions, pages, and following a log while it grows."""
