"""The config of an experiment: read, merged, completed and checked.

``parse_config`` in ``loading`` turns a user's YAML into a frozen ``ExperimentConfig``, or raises one
``ConfigError`` that lists all faults.
"""
