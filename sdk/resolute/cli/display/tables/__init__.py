"""Tables: the choice of columns and rows, and their layout for a terminal, a bar layout and CSV."""
