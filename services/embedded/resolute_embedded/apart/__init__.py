"""Services that run separately, each in its own container."""
