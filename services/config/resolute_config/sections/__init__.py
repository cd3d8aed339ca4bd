"""The sections of a config, one module for each: their fields, types and checks."""
