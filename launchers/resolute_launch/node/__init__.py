"""What runs on each node of an allocation that an engine of clusters placed: a shim of its supervisor."""
