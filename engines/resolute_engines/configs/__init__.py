"""The config fields that engines read, require or do not support."""
