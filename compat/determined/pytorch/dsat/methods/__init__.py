"""The methods that choose the next DeepSpeed config to try."""
