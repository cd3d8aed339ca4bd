"""Services that run separately, each in a container of its own."""
