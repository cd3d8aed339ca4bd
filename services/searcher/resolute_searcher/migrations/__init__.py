"""The migrations of the searcher database."""
