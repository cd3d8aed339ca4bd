"""Which DeepSpeed config is tried next."""
