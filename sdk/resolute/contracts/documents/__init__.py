"""Documents that people write, configs and settings: how they are read, and what is wrong with them.

`document` reads YAML into plain values, `section` is the base of models and their simple fields, `variants`
tells kinds of a section apart by a field, `rejections` and `faults` name each thing that is wrong, with its
path.
Models need pydantic, which comes with the services.
"""
