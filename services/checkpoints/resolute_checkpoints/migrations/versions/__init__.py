"""The migrations, one module for each."""
