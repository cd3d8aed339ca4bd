"""Running an entrypoint on this machine, without a cluster."""
