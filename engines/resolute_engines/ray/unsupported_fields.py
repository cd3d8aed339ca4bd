"""The support of config fields in Ray pools."""

from __future__ import annotations

from resolute_engines.configs.unsupported_fields import (
    STARTS_COLD,
    no_node_excluded,
    queued_by,
)

UNSUPPORTED_FIELDS = (STARTS_COLD, *queued_by("Ray", passed_on={}))
"""Fields without an effect in pools of Ray, of those that have one for processes of this machine."""
REQUIREMENTS = (no_node_excluded("Ray", instead="name the nodes to use by resources of the pool"),)
"""What fields of configs must be in pools of Ray."""
