"""The GPUs of a run: `meter` measures usage, `idleness` detects idle ones, `xid_errors` reads errors."""
