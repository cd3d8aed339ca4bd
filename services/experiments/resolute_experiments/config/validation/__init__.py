"""What every section is built on: the base model and simple field types.

Sections that come in variants, and errors that name each fault with its path.
"""
