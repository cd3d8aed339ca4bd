"""From what a user wrote to a complete config: reading YAML.

Rewriting older spellings to the current form, merging layers, filling in defaults, and checking between
sections.
"""
