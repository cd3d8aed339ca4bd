"""The sections of a config, one module each: their fields, types and checks within one section."""
