"""Experiment configs: reads, merges, completes and checks them.

``parse_config`` in ``loading`` turns a user's YAML into a frozen ``ExperimentConfig``, or raises one
``ConfigError`` that lists all faults.
"""
