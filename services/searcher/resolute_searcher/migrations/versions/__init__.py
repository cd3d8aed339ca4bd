"""The migrations, one for each module, oldest first."""
