"""What every section is built on.

The base model and simple field types, sections that come in variants, and errors that name each fault with
its path.
"""
