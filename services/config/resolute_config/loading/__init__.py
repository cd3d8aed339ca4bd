"""From a user's document to a complete config.

Reading YAML, rewriting older spellings to the current form, merging layers, filling in defaults, and
checking between sections.
"""
