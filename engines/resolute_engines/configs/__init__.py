"""What engines read of configs, require of them, and do not support."""
