"""Configs and settings that people write: their parsing and their error messages.

`document` reads YAML into plain values. `section` has the base class of models and their simple field types.
`variants` selects the kind of a section by the value of a field. `rejections` and `faults` describe every
fault with its path. Models need pydantic, which comes with the services.
"""
