"""Configs and settings that people write: parsing, and error messages.

`document` reads YAML into plain values, `section` is the base of models and their simple fields, `variants`
tells kinds of a section apart by a field, `rejections` and `faults` name each thing that is wrong, with its
path.
Models need pydantic, which comes with the services.
"""
